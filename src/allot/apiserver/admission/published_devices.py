"""Lookup of the devices and drivers of all ResourceSlices, for admission plugins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from allot.api.identities import DeviceId
from allot.api.resource import GROUP
from allot.api.slices import Device, ResourceSliceSpec
from allot.apiserver.pacing import Pacer
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.apiserver.watch_cache.stored_objects import StoredObject

MAX_KNOWN: Final = 1024
"""Slices whose devices are remembered."""


class PublishedDevices:
    """Reads the slices from the watch cache, whose index groups them by driver and pool."""

    def __init__(self, caches: Caches) -> None:
        self._cache = caches.of(resource_named(GROUP, "resourceslices"))
        self._positions: dict[str, tuple[int, dict[str, int]]] = {}
        """The devices of slices that were looked into, by key: the revision, and positions by name."""

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
            known = self._positions.get(stored.key)
            if known is None or known[0] != stored.revision:
                known = stored.revision, self._read_positions(stored)
            for name in wanted[place]:
                position = known[1].get(name)
                if position is None:
                    continue
                spec: ResourceSliceSpec = stored.object.spec
                device, generation = DeviceId(*place, name), spec.pool.generation
                if spec.devices and generation > generations.get(device, -1):
                    generations[device] = generation
                    found[device] = spec.devices[position]
        return found

    def _read_positions(self, stored: StoredObject) -> dict[str, int]:
        """The positions of the devices of a slice by name: of two with one name the first."""
        spec: ResourceSliceSpec = stored.object.spec
        names = [device.name for device in spec.devices or ()]
        positions = dict(zip(reversed(names), reversed(range(len(names))), strict=True))
        if stored.key not in self._positions and len(self._positions) >= MAX_KNOWN:
            self._positions.clear()
        self._positions[stored.key] = stored.revision, positions
        return positions

    async def drivers(self) -> set[str]:
        """Every driver that has slices."""
        await self._cache.refresh()
        return {place[0] for place in self._cache.index_values if isinstance(place, tuple)}
