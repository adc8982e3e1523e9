"""Utilisation and fragmentation of devices, kept up to date allocation by allocation.

Utilisation is the share of devices that claims hold; of a device that can be shared, the share of its most consumed
capacity. Fragmentation is the share of free devices that are on nodes where claims hold other devices of the same
driver: 0 if all free devices are on nodes that are free as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from allot.allocation.pools import PoolId
from allot.api.base import ApiObject, always
from allot.api.claims import AllocationResult
from allot.api.identities import DeviceId
from allot.api.slices import Device, ResourceSlice
from allot.controllers.pool_status import newest_slices


class UsageFigures(ApiObject, frozen=True):
    """Devices at one moment."""

    devices: int = always(int)
    held: int = always(int)
    utilisation: float = always(float)
    fragmentation: float = always(float)


class _Place(NamedTuple):
    """Where devices can be used together: a node, or a pool of several nodes; by driver."""

    driver: str
    node: str


class DeviceUsage:
    """Counts devices and what is held of them. Partitions count by what they are: each is a device."""

    def __init__(self, slices: Iterable[ResourceSlice] = ()) -> None:
        self._devices: dict[DeviceId, tuple[_Place, Device]] = {}
        self._published: dict[PoolId, tuple[DeviceId, ...]] = {}
        self._total: dict[_Place, int] = {}
        self._held: dict[_Place, int] = {}
        self._holders: dict[DeviceId, int] = {}
        """Of all devices in allocations, also of those that are not published (yet)."""
        self._consumed: dict[DeviceId, dict[str, int]] = {}
        self._used = 0.0
        self._held_count = 0
        self._broken_up = 0
        """Free devices on nodes where others are held."""
        for pool, newest in newest_slices(slices).items():
            self.publish(pool, newest)

    def publish(self, pool: PoolId, slices: Iterable[ResourceSlice]) -> None:
        """The newest slices of a pool are these from now on; none: the pool is gone."""
        before = self._published.pop(pool, ())
        self._count_devices(before, -1)
        for id_ in before:
            del self._devices[id_]
        published: list[DeviceId] = []
        for slice_ in slices:
            spec = slice_.spec
            place = _Place(pool.driver, spec.node_name or f"pool {pool.pool}")
            for device in spec.devices or ():
                id_ = pool.device_id(device.name)
                if id_ in self._devices:
                    continue  # a name that two slices have counts once
                where = place
                if device.node_name and not spec.node_name:
                    where = _Place(pool.driver, device.node_name)
                self._devices[id_] = where, device
                published.append(id_)
        if published:
            self._published[pool] = tuple(published)
            self._count_devices(published, 1)

    def take(self, allocation: AllocationResult) -> None:
        """Devices of this allocation are held from now on."""
        self._change(allocation, 1)

    def release(self, allocation: AllocationResult) -> None:
        self._change(allocation, -1)

    def _change(self, allocation: AllocationResult, sign: int) -> None:
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            id_ = result.device_id
            known = self._devices.get(id_)
            before = self._use_of(id_, known[1]) if known is not None else 0.0
            if result.share_id is not None:
                consumed = self._consumed.setdefault(id_, {})
                for name, amount in result.consumed_capacity.items():
                    consumed[name] = consumed.get(name, 0) + sign * amount.nanos
            holders = self._holders.get(id_, 0)
            self._holders[id_] = holders + sign
            if not self._holders[id_]:
                del self._holders[id_]
                self._consumed.pop(id_, None)
            if known is None:
                continue
            place, device = known
            if holders == 0 or holders + sign == 0:
                self._count(place, held=sign)
            self._used += self._use_of(id_, device) - before

    def _count_devices(self, ids: Iterable[DeviceId], sign: int) -> None:
        """Devices appear, or disappear, with what claims hold of them."""
        counts: dict[_Place, list[int]] = {}
        for id_ in ids:
            place, device = self._devices[id_]
            count = counts.setdefault(place, [0, 0])
            count[0] += sign
            if id_ in self._holders:
                count[1] += sign
                self._used += sign * self._use_of(id_, device)
        for place, (devices, held) in counts.items():
            self._count(place, devices, held)

    def _count(self, place: _Place, devices: int = 0, held: int = 0) -> None:
        total, before = self._total.get(place, 0), self._held.get(place, 0)
        self._broken_up -= total - before if before else 0
        total, now = total + devices, before + held
        self._broken_up += total - now if now else 0
        self._held_count += held
        for counts, number in ((self._total, total), (self._held, now)):
            if number:
                counts[place] = number
            else:
                counts.pop(place, None)

    def _use_of(self, id_: DeviceId, device: Device) -> float:
        """How much of the device is used, from 0 to 1."""
        if not self._holders.get(id_, 0):
            return 0.0
        consumed = self._consumed.get(id_)
        if consumed is None or not device.allow_multiple_allocations:
            return 1.0
        shares = [
            consumed.get(name, 0) / capacity.value.nanos
            for name, capacity in device.capacity.items()
            if capacity.value.nanos > 0
        ]
        return min(max(shares, default=1.0), 1.0)

    def figures(self) -> UsageFigures:
        total = len(self._devices)
        free = total - self._held_count
        return UsageFigures(
            devices=total,
            held=self._held_count,
            utilisation=round(self._used / total, 4) if total else 0.0,
            fragmentation=round(self._broken_up / free, 4) if free else 0.0,
        )
