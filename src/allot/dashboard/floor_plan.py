"""The floor plan: every device in its pool, with what the page draws of it, kept up to date pool by pool.

A change of a claim, a slice or a taint rule marks pools as outdated; `refresh` computes only these again, and returns
what is different. Devices and pools have numbers that stay the same as long as the program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from allot.allocation.pools import PoolId
from allot.api.claims import ResourceClaim
from allot.api.identities import DeviceId
from allot.api.quantity import Quantity
from allot.api.slices import Device, ResourceSlice
from allot.client import resources
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.controllers.pool_status import CountedDevice, newest_slices
from allot.features import DEVICE_TAINT_RULES, FeatureGates
from allot.questions.device_holders import DeviceHolders, Holder
from allot.questions.devices import (
    DeviceRow,
    DeviceUse,
    pool_devices,
    unpublished_row,
)

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
        self.holders = DeviceHolders(gates)
        self._has_rules = DEVICE_TAINT_RULES in gates
        self._slices: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._newest: dict[PoolId, tuple[ResourceSlice, ...]] = {}
        self._rules: dict[str, Any] = {}
        self._known: dict[PoolId, _Known] = {}
        self._outdated: dict[PoolId, None] = {}
        self._numbers: dict[DeviceId, int] = {}
        self._pool_numbers: dict[PoolId, int] = {}
        self._ids: list[DeviceId] = []

    # --- changes of the cluster ---

    def changed(self, resource: Resource[Any], old: Any, new: Any) -> None:
        """An object has changed. Other resources than those of devices are ignored."""
        if resource is resources.RESOURCE_CLAIMS:
            self._claim_changed(old, new)
        elif resource is resources.RESOURCE_SLICES:
            self._slice_changed(old, new)
        elif resource is resources.DEVICE_TAINT_RULES and self._has_rules:
            for rule in (old, new):
                if rule is not None:
                    self._rules.pop(rule.metadata.name, None)
            if new is not None:
                self._rules[new.metadata.name] = new
            self._outdated.update(dict.fromkeys(self._slices))

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        for claim in (old, new):
            if claim is not None and claim.status.allocation is not None:
                for result in claim.status.allocation.devices.results:
                    self._outdated[PoolId(result.driver, result.pool)] = None
        if new is not None:
            self.holders.put(new)
        elif old is not None:
            self.holders.remove(old)

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        for slice_ in (old, new):
            if slice_ is None:
                continue
            pool = PoolId(slice_.spec.driver, slice_.spec.pool.name)
            self._outdated[pool] = None
            self._newest.pop(pool, None)
            known = self._slices.setdefault(pool, {})
            if slice_ is new:
                known[slice_.metadata.name] = slice_
            else:
                known.pop(slice_.metadata.name, None)

    def changed_to(self, before: Snapshot, after: Snapshot) -> FloorChange:
        """Go on from the objects of one snapshot to those of another, and refresh. For what-if answers, in a copy."""
        kinds: tuple[Resource[Any], ...] = (
            resources.RESOURCE_SLICES,
            resources.DEVICE_TAINT_RULES,
            resources.RESOURCE_CLAIMS,
        )
        for resource in kinds:
            key = resource.codec.key
            old = {key(obj): obj for obj in before.of(resource)}
            new = {key(obj): obj for obj in after.of(resource)}
            for name in {**old, **new}:
                if old.get(name) is not new.get(name):
                    self.changed(resource, old.get(name), new.get(name))
        return self.refresh()

    @property
    def is_outdated(self) -> bool:
        return bool(self._outdated)

    def refresh(self) -> FloorChange:
        """Compute outdated pools again."""
        outdated, self._outdated = self._outdated, {}
        pools: list[PoolPlan] = []
        gone: list[int] = []
        cells: list[tuple[int, Cell]] = []
        for pool in outdated:
            plan = self._plan(pool)
            known = self._known.get(pool)
            if plan is None:
                self._slices.pop(pool, None)
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
        for counted, row in self._counted(pool):
            if counted.device.name == device.device:
                return row()
        if device.device in self.holders.ledger.taken(pool):
            return unpublished_row(device, self.holders)
        return None

    def published(self, device: DeviceId) -> tuple[ResourceSlice, Device] | None:
        """The device and its slice; None if it is not published."""
        for slice_ in self._newest_slices(PoolId(device.driver, device.pool)):
            for each in slice_.spec.devices or ():
                if each.name == device.device:
                    return slice_, each
        return None

    # --- computing ---

    def _newest_slices(self, pool: PoolId) -> tuple[ResourceSlice, ...]:
        if pool not in self._newest:
            slices = newest_slices(self._slices.get(pool, {}).values())
            self._newest[pool] = slices.get(pool, ())
        return self._newest[pool]

    def _counted(self, pool: PoolId) -> Iterable[tuple[CountedDevice, Callable[[], DeviceRow]]]:
        slices = self._newest_slices(pool)
        rules = tuple(self._rules.values())
        return pool_devices(pool, slices, self.holders, rules) if slices else ()

    def _plan(self, pool: PoolId) -> PoolPlan | None:
        places: list[Place] = []
        cells: list[Cell] = []
        nodes: dict[str, None] = {}
        weights = _Weights(self._newest_slices(pool))
        published: set[str] = set()
        for counted, row_of in self._counted(pool):
            row, device = row_of(), counted.device
            published.add(device.name)
            nodes[row.node] = None
            group, weight = weights.of(device)
            number = self._number(row.id)
            places.append(Place(number, device.name, row.model, row.node, group, weight))
            cells.append(_cell(row, device))
        for name in sorted({*self.holders.ledger.taken(pool)} - published):
            id_ = DeviceId(pool.driver, pool.pool, name)
            places.append(Place(self._number(id_), name, "", "", "", 100))
            cells.append(_cell(unpublished_row(id_, self.holders), None))
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


def _cell(row: DeviceRow, device: Device | None) -> Cell:
    marks = TAINTED if row.taints else 0
    if any(holder.failure for holder in row.held_by):
        marks |= FAILED
    return Cell(
        _STATE_NUMBERS[row.state], _used(row, device), marks, tuple(map(_holder, row.held_by))
    )


def _holder(holder: Holder) -> tuple[str, ...]:
    return holder.claim, *holder.pods[:MAX_PODS]


def _used(row: DeviceRow, device: Device | None) -> int:
    """In percent; of a device that can be shared, of the capacity of which most is used."""
    if not row.held_by:
        return 0
    if device is None or not row.remaining or row.state is DeviceUse.HELD:
        return 100
    shares = [
        100 - 100 * Quantity.parse(row.remaining[name]).nanos // capacity.value.nanos
        for name, capacity in device.capacity.items()
        if capacity.value.nanos > 0
    ]
    return min(100, max((*shares, 1)))
