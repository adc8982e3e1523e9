"""Lookup of the devices and drivers of all ResourceSlices, for admission plugins."""

from __future__ import annotations

from collections.abc import Iterable

from allot.api.identities import DeviceId
from allot.api.resource import GROUP
from allot.api.slices import Device, ResourceSlice
from allot.apiserver.pacing import Pacer
from allot.apiserver.watch_cache.caches import Caches, resource_named


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
            slice_: ResourceSlice = stored.object
            generation, names = slice_.spec.pool.generation, wanted[place]
            for published in slice_.spec.devices or ():
                if published.name not in names:
                    continue
                device = DeviceId(*place, published.name)
                if generation > generations.get(device, -1):
                    generations[device] = generation
                    found[device] = published
        return found

    async def drivers(self) -> set[str]:
        """Every driver that has slices."""
        await self._cache.refresh()
        return {place[0] for place in self._cache.index_values if isinstance(place, tuple)}
