"""Lookup of the devices and drivers of all ResourceSlices, for admission plugins."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from allot.api.identities import DeviceId
from allot.api.resource import GROUP
from allot.api.slices import Device, ResourceSliceSpec
from allot.apiserver.pacing import Pacer
from allot.apiserver.watch_cache.caches import Caches, resource_named

_name: Final = attrgetter("name")


class PublishedDevices:
    """Reads the slices from the watch cache, whose index groups them by driver and pool."""

    def __init__(self, caches: Caches) -> None:
        self._cache = caches.of(resource_named(GROUP, "resourceslices"))

    async def find(self, devices: Iterable[DeviceId]) -> dict[DeviceId, Device]:
        """Those of the devices that are published, from the newest generation of their pool."""
        if not self._cache.is_current:
            await self._cache.refresh()
        wanted: dict[tuple[str, str], set[str]] = {}
        for driver, pool, name in devices:
            wanted.setdefault((driver, pool), set()).add(name)
        found: dict[DeviceId, Device] = {}
        generations: dict[DeviceId, int] = {}
        slices = [(place, stored) for place in wanted for stored in self._cache.indexed(place)]
        pacer = Pacer() if len(slices) > 1 else None
        for place, stored in slices:
            if pacer is not None and pacer.is_due:
                await pacer.pause()
            spec: ResourceSliceSpec = stored.object.spec
            published = spec.devices or ()
            names = list(map(_name, published))
            for name in wanted[place].intersection(names):
                device = DeviceId(*place, name)
                if spec.pool.generation > generations.get(device, -1):
                    generations[device] = spec.pool.generation
                    found[device] = published[names.index(name)]
        return found

    async def drivers(self) -> set[str]:
        """Every driver that has slices."""
        await self._cache.refresh()
        return {place[0] for place in self._cache.index_values if isinstance(place, tuple)}
