"""The devices of a pool, one by one, and whether they are available.

Only slices of the newest generation count; the driver has yet to delete older ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from allot.allocation.allocated_devices import Ledger
from allot.allocation.pools import PoolId
from allot.allocation.taints import PoolTaintRules, may_select
from allot.api.classes import DeviceTaintRule
from allot.api.identities import DeviceId
from allot.api.slices import Device, ResourceSlice
from allot.client.steps import Steps, finish

DEVICES_AT_ONCE: Final = 200
"""Devices, or items of similar cost, that are counted before other tasks get a turn."""


class DeviceAvailability(Enum):
    """Exactly one per device: an allocated device that is tainted counts as allocated."""

    AVAILABLE = "available"
    ALLOCATED = "allocated"
    UNAVAILABLE = "unavailable"


class CountedDevice(NamedTuple):
    """A device in a slice."""

    slice: ResourceSlice
    device: Device
    state: DeviceAvailability
    is_tainted: bool = False
    """Whether it has a taint that blocks claims without a toleration."""

    @property
    def id(self) -> DeviceId:
        return self.slice.spec.device_id(self.device)

    @property
    def node_name(self) -> str:
        """The node it is on; empty if it is not tied to one node."""
        return self.slice.spec.node_name or self.device.node_name or ""


class PoolAvailability(NamedTuple):
    """A pool and its devices. The number of devices is unknown while the pool is incomplete."""

    id: PoolId
    generation: int
    slices: tuple[ResourceSlice, ...]
    devices: tuple[CountedDevice, ...]
    taken: Collection[str]
    """The names of allocated devices, including devices that are no longer published."""

    @property
    def announced(self) -> int:
        """The number of slices that the pool announces."""
        return self.slices[0].spec.pool.resource_slice_count

    @property
    def is_incomplete(self) -> bool:
        return len(self.slices) < self.announced

    @property
    def node_name(self) -> str | None:
        """The node of all slices, if it is the same."""
        first = self.slices[0].spec.node_name
        same = all(slice_.spec.node_name == first for slice_ in self.slices)
        return first or None if same else None

    @property
    def unpublished(self) -> int:
        """The number of allocated devices that are no longer published."""
        return len(frozenset(self.taken) - {counted.device.name for counted in self.devices})


SlicesByPool = Mapping[PoolId, tuple[ResourceSlice, ...]]


def newest_slices(
    slices: Iterable[ResourceSlice], driver: str | None = None, pool_name: str | None = None
) -> SlicesByPool:
    """The slices of each pool's newest generation, sorted by pool and slice name."""
    return finish(finding_newest_slices(slices, driver, pool_name))


def finding_newest_slices(
    slices: Iterable[ResourceSlice], driver: str | None = None, pool_name: str | None = None
) -> Steps[SlicesByPool]:
    """`newest_slices` in steps."""
    found: dict[PoolId, list[ResourceSlice]] = {}
    for position, slice_ in enumerate(slices, 1):
        spec = slice_.spec
        if driver in (None, spec.driver) and pool_name in (None, spec.pool.name):
            found.setdefault(PoolId(spec.driver, spec.pool.name), []).append(slice_)
        if not position % (5 * DEVICES_AT_ONCE):
            yield
    newest: dict[PoolId, tuple[ResourceSlice, ...]] = {}
    for position, pool in enumerate(sorted(found), 1):
        newest[pool] = _newest(found[pool])
        if not position % DEVICES_AT_ONCE:
            yield
    return newest


def _newest(slices: list[ResourceSlice]) -> tuple[ResourceSlice, ...]:
    generation = max(slice_.spec.pool.generation for slice_ in slices)
    newest = [slice_ for slice_ in slices if slice_.spec.pool.generation == generation]
    return tuple(sorted(newest, key=lambda slice_: slice_.metadata.name))


def pool_availability(
    pool: PoolId,
    slices: tuple[ResourceSlice, ...],
    ledger: Ledger,
    rules: Iterable[DeviceTaintRule] = (),
) -> PoolAvailability:
    """The availability of every device of a pool. `slices` are those of its newest generation, at least one."""
    return finish(computing_pool_availability(pool, slices, ledger, rules))


def computing_pool_availability(
    pool: PoolId,
    slices: tuple[ResourceSlice, ...],
    ledger: Ledger,
    rules: Iterable[DeviceTaintRule] = (),
) -> Steps[PoolAvailability]:
    """`pool_availability` in steps. The allocated devices are those at the first step."""
    taken = frozenset(ledger.taken(pool))
    concerning: list[DeviceTaintRule] = []
    for position, rule in enumerate(rules, 1):
        if may_select(rule, *pool):
            concerning.append(rule)
        if not position % (5 * DEVICES_AT_ONCE):
            yield

    taints = PoolTaintRules(concerning, *pool)

    def counted(slice_: ResourceSlice, device: Device) -> CountedDevice:
        tainted = bool(taints.blocking_taints(device))
        state = DeviceAvailability.UNAVAILABLE if tainted else DeviceAvailability.AVAILABLE
        if device.name in taken:
            state = DeviceAvailability.ALLOCATED
        return CountedDevice(slice_, device, state, tainted)

    devices: list[CountedDevice] = []
    at_once = max(1, DEVICES_AT_ONCE // (1 + len(concerning)))
    for slice_ in slices:
        for device in slice_.spec.devices or ():
            devices.append(counted(slice_, device))
            if not len(devices) % at_once:
                yield
    return PoolAvailability(pool, slices[0].spec.pool.generation, slices, tuple(devices), taken)
