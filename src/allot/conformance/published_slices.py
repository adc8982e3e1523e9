"""What the driver has published: its ResourceSlices of the node, and the devices in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from allot.api.slices import Device, ResourceSlice
from allot.client.client import Client
from allot.client.options import Scope
from allot.client.resources import RESOURCE_SLICES
from allot.conformance.registrations import Registrations
from allot.conformance.results import CheckSkippedError
from allot.conformance.waiting import Waiting


class PooledDevice(NamedTuple):
    """A published device."""

    pool: str
    device: Device

    @property
    def name(self) -> str:
        return self.device.name

    @property
    def is_shareable(self) -> bool:
        return bool(self.device.allow_multiple_allocations)


class PublishedSlices:
    """The slices of one driver and node."""

    def __init__(
        self, client: Client, node: str, registrations: Registrations, waiting: Waiting
    ) -> None:
        self._client = client
        self._node = node
        self._registrations = registrations
        self._waiting = waiting

    async def now(self) -> list[ResourceSlice]:
        """As they are, complete or not."""
        fields = f"spec.driver={self._registrations.driver_name},spec.nodeName={self._node}"
        return list((await self._client.list(RESOURCE_SLICES, Scope(field_selector=fields))).items)

    async def complete(self) -> list[ResourceSlice]:
        """Once all pools are complete."""
        await self._registrations.current()

        async def all_complete() -> list[ResourceSlice]:
            found = await self.now()
            return found if found and are_complete(found) else []

        return await self._waiting.until(
            all_complete, "complete pools of the node in ResourceSlices"
        )

    async def devices(
        self, count: int = 1, *, is_shareable: bool | None = None
    ) -> list[PooledDevice]:
        """Devices that claims can have. `CheckSkippedError` if there are fewer."""
        found = [
            PooledDevice(slice_.spec.pool.name, device)
            for slice_ in await self.complete()
            for device in slice_.spec.devices or ()
            if is_shareable in (None, bool(device.allow_multiple_allocations))
            and not device.consumes_counters
            and not device.binding_conditions
        ]
        if len(found) < count:
            kind = {None: "", True: "shareable ", False: "exclusive "}[is_shareable]
            raise CheckSkippedError(f"needs {count} {kind}device(s); the driver has {len(found)}")
        return found[:count]


def are_complete(slices: Iterable[ResourceSlice]) -> bool:
    """Whether every pool has all slices of its newest generation, and none of an older one."""
    pools: dict[str, list[ResourceSlice]] = {}
    for slice_ in slices:
        pools.setdefault(slice_.spec.pool.name, []).append(slice_)
    return all(
        len({slice_.spec.pool.generation for slice_ in pool}) == 1
        and {slice_.spec.pool.resource_slice_count for slice_ in pool} == {len(pool)}
        for pool in pools.values()
    )
