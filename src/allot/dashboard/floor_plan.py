"""The floor plan: every device in its pool, with what the page draws of it, kept up to date pool by pool.

A change of a claim, a slice or a taint rule marks pools as outdated; `refresh` computes only these again, and returns
what is different. What a slice says of a device, its place, is computed again only if slices change. Devices and pools
have numbers that stay the same as long as the program runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from allot.allocation.pools import PoolId
from allot.api.identities import DeviceId
from allot.api.slices import Device, ResourceSlice
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.controllers.pool_status import CountedDevice
from allot.features import FeatureGates
from allot.questions.device_holders import Holder
from allot.questions.device_text import used_share
from allot.questions.devices import FREE_DEVICE, DeviceRow, DeviceUse, PoolDevices, model_of
from allot.questions.live_pools import POOL_KINDS, LivePools

STATES: Final = tuple(DeviceUse)
"""States by the number that stands for them in messages."""
_STATE_NUMBERS: Final = {state: number for number, state in enumerate(STATES)}

TAINTED: Final = 1
FAILED: Final = 2
"""Marks of a device, as bits: it has a taint that blocks claims; a binding failure condition is True."""
MAX_PODS: Final = 8
"""Pods of a claim that are sent with each of its devices; the details of a claim have all."""


class Cell(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What changes of a device: its state, how much of it is used in percent, marks, and holders."""

    state: int
    used: int
    marks: int
    holders: tuple[tuple[str, ...], ...]
    """Of each claim its name, and the pods that it is reserved for."""


class PlacedDevice(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What stays of a device: its number and name, where and what it is."""

    number: int
    name: str
    model: str
    node: str
    """The node, if the pool has devices on several nodes."""
    group: str
    """The counter set that it shares with other partitions (KEP-4815)."""
    weight: int
    """How much of the counter set it uses, in percent; 100 for the whole device."""


class PoolPlan(msgspec.Struct, frozen=True):
    """A pool and its devices, as sent to viewers."""

    number: int
    driver: str
    pool: str
    node: str
    places: tuple[PlacedDevice, ...]
    cells: tuple[Cell, ...]


class FloorChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is different since the last refresh."""

    pools: tuple[PoolPlan, ...] = ()
    """New pools, and pools whose devices are others than before."""
    gone: tuple[int, ...] = ()
    """Numbers of pools that are gone."""
    cells: tuple[tuple[int, Cell], ...] = ()
    """Devices in a new state."""

    def __bool__(self) -> bool:
        return bool(self.pools or self.gone or self.cells)


class _Known(NamedTuple):
    """A pool as it was computed last."""

    plan: PoolPlan
    published: tuple[PlacedDevice, ...]
    slices: tuple[ResourceSlice, ...]


OnSlices = Callable[[PoolId, tuple[ResourceSlice, ...]], None]
"""Called with the newest slices of a pool."""


class FloorPlan:
    """All pools of a cluster."""

    def __init__(self, gates: FeatureGates, on_slices: OnSlices | None = None) -> None:
        """`on_slices` is called for each pool whose slices are others than at the last refresh."""
        self._live = LivePools(gates)
        self._on_slices = on_slices or _ignore
        self._waiting: deque[PoolId] = deque()
        """Outdated pools that the current refresh has not come to."""
        self._known: dict[PoolId, _Known] = {}
        self._numbers: dict[DeviceId, int] = {}
        self._pool_numbers: dict[PoolId, int] = {}
        self._ids: list[DeviceId] = []

    # --- changes of the cluster ---

    def changed(self, resource: Resource[Any], old: Any, new: Any) -> None:
        """An object has changed. Other resources than those of devices are ignored."""
        self._live.change(resource, old, new)

    def changed_to(self, before: Snapshot, after: Snapshot) -> FloorChange:
        """Go on from the objects of one snapshot to those of another, and refresh. For what-if answers, in a copy."""
        for resource in POOL_KINDS:
            key = resource.codec.key
            old = {key(obj): obj for obj in before.of(resource)}
            new = {key(obj): obj for obj in after.of(resource)}
            for name in {**old, **new}:
                if old.get(name) is not new.get(name):
                    self.changed(resource, old.get(name), new.get(name))
        return self.refresh()

    @property
    def is_outdated(self) -> bool:
        """Whether pools are left to compute."""
        return bool(self._waiting or self._live.outdated)

    def refresh(self, max_devices: int | None = None) -> FloorChange:
        """Compute outdated pools again: all, or as many as have about `max_devices` devices, and at least one."""
        pools: list[PoolPlan] = []
        gone: list[int] = []
        cells: list[tuple[int, Cell]] = []
        computed = 0
        while self.is_outdated and (max_devices is None or computed < max_devices):
            pool = self._next_outdated()
            known = self._known.get(pool)
            now = self._computed(pool, known)
            if now is None:
                if known is not None:
                    del self._known[pool]
                    gone.append(known.plan.number)
                continue
            self._known[pool] = now
            plan = now.plan
            computed += len(plan.places)
            if known is None or known.plan.places != plan.places or known.plan.node != plan.node:
                pools.append(plan)
                continue
            cells += (
                (place.number, after)
                for place, before, after in zip(
                    plan.places, known.plan.cells, plan.cells, strict=True
                )
                if before is not after and before != after
            )
        return FloorChange(tuple(pools), tuple(gone), tuple(cells))

    def _next_outdated(self) -> PoolId:
        if not self._waiting:
            self._waiting.extend(self._live.take_outdated())
        return self._waiting.popleft()

    # --- reading ---

    def plans(self) -> Iterator[PoolPlan]:
        """All pools, by driver and name, each as it is when it is reached."""
        for pool in sorted(self._known):
            known = self._known.get(pool)
            if known is not None:
                yield known.plan

    def number_of(self, device: DeviceId) -> int | None:
        return self._numbers.get(device)

    def row(self, device: DeviceId) -> DeviceRow | None:
        """The device as `allot devices` shows it."""
        pool = PoolId(device.driver, device.pool)
        devices = self._live.devices(pool)
        if devices is not None:
            for counted in devices.counted:
                if counted.device.name == device.device:
                    return devices.row(counted)
        unpublished = self._live.unpublished_rows(pool, ())
        return next((row for row in unpublished if row.id == device), None)

    def published(self, device: DeviceId) -> tuple[ResourceSlice, Device] | None:
        """The device and its slice; None if it is not published."""
        return self._live.published(device)

    # --- computing ---

    def _computed(self, pool: PoolId, known: _Known | None) -> _Known | None:
        slices = self._live.slices(pool)
        has_same_slices = known is not None and known.slices is slices
        if not has_same_slices:
            self._on_slices(pool, slices)
        devices = self._live.devices(pool)
        published: tuple[PlacedDevice, ...] = ()
        cells: list[Cell] = []
        if devices is not None:
            if known is not None and has_same_slices:
                published = known.published
            else:
                published = self._places(pool, devices, slices)
            ids = self._ids
            for place, counted in zip(published, devices.counted, strict=True):
                cells.append(_cell(devices, counted, ids[place.number]))
        names = {place.name for place in published}
        unpublished = tuple(self._live.unpublished_rows(pool, names))
        places = published + tuple(
            PlacedDevice(self._number(row.id), row.device, "", "", "", 100) for row in unpublished
        )
        cells += map(_row_cell, unpublished)
        if not places:
            return None
        number = self._pool_numbers.setdefault(pool, len(self._pool_numbers))
        node = _common_node(devices)
        plan = PoolPlan(number, pool.driver, pool.pool, node, places, tuple(cells))
        return _Known(plan, published, slices)

    def _places(
        self, pool: PoolId, devices: PoolDevices, slices: Iterable[ResourceSlice]
    ) -> tuple[PlacedDevice, ...]:
        weights = _Weights(slices)
        has_one_node = bool(_common_node(devices))
        places: list[PlacedDevice] = []
        for counted in devices.counted:
            device = counted.device
            group, weight = weights.of(device)
            node = "" if has_one_node else devices.node_of(counted)
            number = self._number(pool.device_id(device.name))
            places.append(PlacedDevice(number, device.name, model_of(device), node, group, weight))
        return tuple(places)

    def _number(self, device: DeviceId) -> int:
        number = self._numbers.get(device)
        if number is None:
            number = self._numbers[device] = len(self._ids)
            self._ids.append(device)
        return number


class _Weights:
    """How much of its counter set each partition of a pool uses."""

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self._total = {
            (counter_set.name, name): counter.value.nanos
            for slice_ in slices
            for counter_set in slice_.spec.shared_counters or ()
            for name, counter in counter_set.counters.items()
        }

    def of(self, device: Device) -> tuple[str, int]:
        """The first counter set of a device, and the largest share of a counter in percent."""
        if not device.consumes_counters:
            return "", 100
        first = device.consumes_counters[0]
        shares = [
            100 * counter.value.nanos // total
            for name, counter in first.counters.items()
            if (total := self._total.get((first.counter_set, name), 0)) > 0
        ]
        return first.counter_set, min(100, max(shares, default=100))


def _ignore(pool: PoolId, slices: tuple[ResourceSlice, ...]) -> None:
    """No other part counts devices."""


def _common_node(devices: PoolDevices | None) -> str:
    """The node that all devices of a pool are on; empty if they are on several, or on none."""
    if devices is None:
        return ""
    if devices.node_name:
        return devices.node_name
    nodes = {devices.node_of(counted) for counted in devices.counted}
    return nodes.pop() if len(nodes) == 1 else ""


def _cell(devices: PoolDevices, counted: CountedDevice, id_: DeviceId) -> Cell:
    state = devices.state(counted, id_)
    if state is FREE_DEVICE:
        return _FREE_CELL
    marks = TAINTED if counted.is_tainted else 0
    if not state.holders:
        return _UNHELD[state.use, marks]
    if counted.device.allow_multiple_allocations:
        return _row_cell(devices.row(counted))
    return _held_cell(state.use, 100, marks, state.holders)


def _row_cell(row: DeviceRow) -> Cell:
    marks = TAINTED if row.taints else 0
    return _held_cell(row.state, round(100 * used_share(row)), marks, row.held_by)


def _held_cell(state: DeviceUse, used: int, marks: int, holders: tuple[Holder, ...]) -> Cell:
    if any(holder.failure for holder in holders):
        marks |= FAILED
    return Cell(_STATE_NUMBERS[state], used, marks, tuple(map(_holder, holders)))


def _holder(holder: Holder) -> tuple[str, ...]:
    return holder.claim, *holder.pods[:MAX_PODS]


_UNHELD: Final = {
    (state, marks): Cell(_STATE_NUMBERS[state], 0, marks, ())
    for state in STATES
    for marks in (0, TAINTED)
}
"""Cells of devices without holders, which are equal for many devices."""
_FREE_CELL: Final = _UNHELD[DeviceUse.FREE, 0]
