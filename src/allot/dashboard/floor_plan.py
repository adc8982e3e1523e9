"""The floor plan: every device in its pool, with what the page draws of it, kept up to date pool by pool.

A change of a claim, a slice or a taint rule marks pools as outdated; `refresh` computes only these again, and returns
what is different. Devices and pools have numbers that stay the same as long as the program runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from allot.allocation.pools import PoolId
from allot.api.identities import DeviceId
from allot.api.slices import Device, ResourceSlice
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.features import FeatureGates
from allot.questions.device_holders import Holder
from allot.questions.device_text import used_share
from allot.questions.devices import DeviceRow, DeviceUse
from allot.questions.live_pools import POOL_KINDS, LivePools

STATES: Final = tuple(DeviceUse)
"""States by the number that stands for them in messages."""
_STATE_NUMBERS: Final = {state: number for number, state in enumerate(STATES)}

TAINTED: Final = 1
FAILED: Final = 2
"""Marks of a device, as bits: it has a taint that blocks claims; a binding failure condition is True."""
MAX_PODS: Final = 8
"""Pods of a claim that are sent with each of its devices; the details of a claim have all."""


class Cell(msgspec.Struct, frozen=True, array_like=True):
    """What changes of a device: its state, how much of it is used in percent, marks, and holders."""

    state: int
    used: int
    marks: int
    holders: tuple[tuple[str, ...], ...]
    """Of each claim its name, and the pods that it is reserved for."""


class Place(msgspec.Struct, frozen=True, array_like=True):
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
    places: tuple[Place, ...]
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
    plan: PoolPlan
    by_number: dict[int, Cell]


class FloorPlan:
    """All pools of a cluster."""

    def __init__(self, gates: FeatureGates) -> None:
        self._live = LivePools(gates)
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

    def refresh(self) -> FloorChange:
        """Compute outdated pools again."""
        pools: list[PoolPlan] = []
        gone: list[int] = []
        cells: list[tuple[int, Cell]] = []
        for pool in self._live.take_outdated():
            plan = self._plan(pool)
            known = self._known.get(pool)
            if plan is None:
                if known is not None:
                    del self._known[pool]
                    gone.append(known.plan.number)
                continue
            numbers = [place.number for place in plan.places]
            by_number = dict(zip(numbers, plan.cells, strict=True))
            self._known[pool] = _Known(plan, by_number)
            if known is None or known.plan.places != plan.places or known.plan.node != plan.node:
                pools.append(plan)
                continue
            cells += (
                (number, cell)
                for number, cell in by_number.items()
                if known.by_number[number] != cell
            )
        return FloorChange(tuple(pools), tuple(gone), tuple(cells))

    # --- reading ---

    def plans(self) -> Iterator[PoolPlan]:
        """All pools, by driver and name."""
        return (self._known[pool].plan for pool in sorted(self._known))

    def number_of(self, device: DeviceId) -> int | None:
        return self._numbers.get(device)

    def id_of(self, number: int) -> DeviceId:
        return self._ids[number]

    def row(self, device: DeviceId) -> DeviceRow | None:
        """The device as `allot devices` shows it."""
        pool = PoolId(device.driver, device.pool)
        for counted, row in self._live.devices(pool):
            if counted.device.name == device.device:
                return row()
        unpublished = self._live.unpublished_rows(pool, ())
        return next((row for row in unpublished if row.id == device), None)

    def published(self, device: DeviceId) -> tuple[ResourceSlice, Device] | None:
        """The device and its slice; None if it is not published."""
        return self._live.published(device)

    # --- computing ---

    def _plan(self, pool: PoolId) -> PoolPlan | None:
        places: list[Place] = []
        cells: list[Cell] = []
        nodes: dict[str, None] = {}
        weights = _Weights(self._live.slices(pool))
        published: set[str] = set()
        for counted, row_of in self._live.devices(pool):
            row, device = row_of(), counted.device
            published.add(device.name)
            nodes[row.node] = None
            group, weight = weights.of(device)
            number = self._number(row.id)
            places.append(Place(number, device.name, row.model, row.node, group, weight))
            cells.append(_cell(row))
        for row in self._live.unpublished_rows(pool, published):
            places.append(Place(self._number(row.id), row.device, "", "", "", 100))
            cells.append(_cell(row))
        if not places:
            return None
        node = next(iter(nodes)) if len(nodes) == 1 else ""
        if node:
            places = [msgspec.structs.replace(each, node="") for each in places]
        number = self._pool_numbers.setdefault(pool, len(self._pool_numbers))
        return PoolPlan(number, pool.driver, pool.pool, node, tuple(places), tuple(cells))

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


def _cell(row: DeviceRow) -> Cell:
    marks = TAINTED if row.taints else 0
    if any(holder.failure for holder in row.held_by):
        marks |= FAILED
    used = round(100 * used_share(row))
    return Cell(_STATE_NUMBERS[row.state], used, marks, tuple(map(_holder, row.held_by)))


def _holder(holder: Holder) -> tuple[str, ...]:
    return holder.claim, *holder.pods[:MAX_PODS]
