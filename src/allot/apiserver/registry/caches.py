"""One cache per stored resource, loaded when it is first needed; keys; lookups across resources."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cache
from typing import Final

import msgspec

from allot.api.identities import DeviceId, GroupVersion
from allot.api.resource import GROUP as DRA
from allot.api.slices import Device, ResourceSlice
from allot.apiserver.kinds.resources import Resource, find
from allot.apiserver.pacing import Pacer
from allot.apiserver.registry.cache import ResourceCache
from allot.apiserver.registry.codecs import codec_for, stored_resource
from allot.apiserver.registry.stored_objects import StoredObject
from allot.apiserver.registry.watch_window import WINDOW, WINDOW_BYTES, WindowBudget
from allot.storage.interface import Store

REGISTRY: Final = "registry/"


def resource_named(group: str, plural: str) -> Resource:
    """A resource that is always there, in its preferred version."""
    resource = find(GroupVersion(group, "v1"), plural)
    assert resource is not None
    return resource


def key_prefix(resource: Resource, namespace: str = "") -> str:
    """What the keys of all objects of a resource (in a namespace) start with."""
    everywhere = _prefix_of_all(resource)
    return f"{everywhere}{namespace}/" if namespace else everywhere


@cache
def _prefix_of_all(resource: Resource) -> str:
    return f"{REGISTRY}{stored_resource(resource).qualified_name}/"


class Caches:
    """What this API server knows of the store."""

    def __init__(
        self, store: Store, *, window: int = WINDOW, window_bytes: int = WINDOW_BYTES
    ) -> None:
        self.namespaces = resource_named("", "namespaces")
        self._slices = resource_named(DRA, "resourceslices")
        self._store = store
        self._window = window
        self._budget = WindowBudget(window_bytes)
        self._caches: dict[Resource, ResourceCache] = {}

    def of(self, resource: Resource) -> ResourceCache:
        found = self._caches.get(resource)
        if found is not None:
            return found
        home = stored_resource(resource)
        found = self._caches[home] = self._caches.get(home) or ResourceCache(
            self._store,
            key_prefix(home),
            codec_for(home),
            window=self._window,
            budget=self._budget,
            index=_pool_of if home is self._slices else None,
        )
        return found

    def key(self, resource: Resource, namespace: str, name: str) -> str:
        return key_prefix(resource, namespace) + name

    async def get(self, resource: Resource, key: str) -> StoredObject | None:
        """The object as of now."""
        cache = self.of(resource)
        await cache.refresh()
        return cache.get(key)

    async def namespace(self, name: str) -> StoredObject | None:
        return await self.get(self.namespaces, self.key(self.namespaces, "", name))

    async def published_devices(self, devices: Iterable[DeviceId]) -> dict[DeviceId, Device]:
        """Those devices that are published, as their newest generation has them."""
        cache = self.of(self._slices)
        await cache.refresh()
        wanted: dict[tuple[str, str], set[str]] = {}
        for driver, pool, name in devices:
            wanted.setdefault((driver, pool), set()).add(name)
        found: dict[DeviceId, Device] = {}
        generations: dict[DeviceId, int] = {}
        pacer = Pacer()
        for (driver, pool), names in wanted.items():
            async for stored in pacer.each(tuple(cache.indexed((driver, pool)))):
                slice_: ResourceSlice = stored.object
                generation = slice_.spec.pool.generation
                for published in slice_.spec.devices or ():
                    if published.name not in names:
                        continue
                    device = DeviceId(driver, pool, published.name)
                    if generation > generations.get(device, -1):
                        generations[device] = generation
                        found[device] = published
        return found

    async def drivers(self) -> set[str]:
        """Every driver that has slices."""
        cache = self.of(self._slices)
        await cache.refresh()
        return {place[0] for place in cache.index_values if isinstance(place, tuple)}

    async def close(self) -> None:
        for each in self._caches.values():
            await each.close()


class _Pool(msgspec.Struct):
    name: str = ""


class _SliceSpec(msgspec.Struct):
    driver: str = ""
    pool: _Pool = msgspec.field(default_factory=_Pool)


class _Slice(msgspec.Struct):
    """As much of a stored slice as the index needs."""

    spec: _SliceSpec = msgspec.field(default_factory=_SliceSpec)


_slice_decoder: Final = msgspec.json.Decoder(_Slice)


def _pool_of(stored: StoredObject) -> Hashable:
    spec = _slice_decoder.decode(stored.entry.value).spec
    return (spec.driver, spec.pool.name)
