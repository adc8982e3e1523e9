"""One cache per stored resource, loaded when it is first needed; keys; lookups across resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from allot.api.identities import GroupVersion
from allot.apiserver.kinds.resources import Resource, find, forget_resources, per_resource
from allot.apiserver.watch_cache.cache import ResourceCache
from allot.apiserver.watch_cache.codecs import codec_for, stored_resource
from allot.apiserver.watch_cache.representations import REPRESENTATIONS
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.apiserver.watch_cache.window import WINDOW, WINDOW_BYTES, WindowBudget
from allot.storage.interface import Entry, Store

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


@per_resource
def _prefix_of_all(resource: Resource) -> str:
    return f"{REGISTRY}{stored_resource(resource).qualified_name}/"


class _ByResource(dict[Resource, ResourceCache]):
    """Caches by the resource whose objects are stored; others are looked up by that."""

    def __init__(self, make: Callable[[Resource], ResourceCache]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, resource: Resource) -> ResourceCache:
        made = self._make(resource)
        if resource.custom is None:  # served as long as the server
            self[resource] = made
        return made


class Caches:
    """What this API server knows of the store."""

    def __init__(
        self, store: Store, *, window: int = WINDOW, window_bytes: int = WINDOW_BYTES
    ) -> None:
        self.namespaces = resource_named("", "namespaces")
        self.store = store
        self._window = window
        self._budget = WindowBudget(window_bytes)
        self._caches = _ByResource(self._make)
        self.of: Callable[[Resource], ResourceCache] = self._caches.__getitem__
        """The cache of a resource; made when it is first asked for."""

    async def forget(self, resource: Resource) -> None:
        """Close the cache of a resource that is no longer served, or served otherwise."""
        found = self._caches.pop(stored_resource(resource), None)
        for each in [each for each, cache in self._caches.items() if cache is found]:
            del self._caches[each]
        if found is not None:
            self._budget.remove(found)
            await found.close()
            codec = found.codec
            REPRESENTATIONS.discard(lambda owner: owner.codec is codec)
        forget_resources()

    @property
    def custom_resources(self) -> list[Resource]:
        """The custom resources that have a cache."""
        return [resource for resource in self._caches if resource.custom is not None]

    def _make(self, resource: Resource) -> ResourceCache:
        home = stored_resource(resource)
        found = self._caches.get(home)
        if found is None:
            found = self._caches[home] = ResourceCache(
                self.store,
                key_prefix(home),
                codec_for(home),
                window=self._window,
                budget=self._budget,
                index=home.cache_index,
            )
        return found

    def last_change(self, resource: Resource) -> int:
        """The revision of the last change of a resource that was read; 0 if it was not read."""
        found = self._caches.get(stored_resource(resource))
        return 0 if found is None else found.last_change

    def key(self, resource: Resource, namespace: str, name: str) -> str:
        everywhere = _prefix_of_all(resource)
        return f"{everywhere}{namespace}/{name}" if namespace else everywhere + name

    async def get(self, resource: Resource, key: str) -> StoredObject | None:
        """The object as of now."""
        cache = self.of(resource)
        if not cache.is_current:
            await cache.refresh()
        return cache.get(key)

    def written(self, resource: Resource, entry: Entry, obj: Any) -> StoredObject:
        """The object of a write that is in the store: the one in the cache, if the write has arrived there.

        It is not decoded again: `obj` is what was encoded.
        """
        cache = self.of(resource)
        stored, codec = cache.get(entry.key), cache.codec
        if stored is None or stored.revision != entry.revision:
            return StoredObject(entry, codec, obj if codec.keeps_written else None)
        if codec.keeps_written:
            stored.adopt(obj)
        return stored

    async def namespace(self, name: str) -> StoredObject | None:
        """The namespace as of now."""
        cache = self.of(self.namespaces)
        if not cache.is_current:
            await cache.refresh()
        return cache.get(cache.prefix + name)

    def current_namespace(self, name: str) -> StoredObject | None:
        """The same without waiting; None also if the cache has to catch up first."""
        cache = self.of(self.namespaces)
        return cache.get(cache.prefix + name) if cache.is_current else None

    async def close(self) -> None:
        for each in set(self._caches.values()):
            await each.close()
