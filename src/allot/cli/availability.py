"""Availability: the figures of the pool status controller, summed by pool, driver, node and class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from allot.allocation.allocated_devices import Ledger
from allot.allocation.devices import PoolDevice
from allot.allocation.errors import AllocationError
from allot.allocation.pools import CounterBudget
from allot.allocation.search.candidates import LazySelector
from allot.api.base import ApiObject, always, replace
from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.identities import DeviceId
from allot.api.pool_status import PoolStatus
from allot.api.slices import ResourceSlice
from allot.controllers.pool_status import (
    CountedDevice,
    DeviceAvailability,
    PoolAvailability,
    newest_slices,
    pool_availability,
    pool_status,
)
from allot.controllers.pool_status.packing import count_at_once
from allot.controllers.pool_status.partitions import counters_left
from allot.features import DEVICE_TAINT_RULES, FeatureGates
from allot.questions.class_names import UnknownClassError
from allot.scheduler.plugins.dynamic_resources.binding_conditions import devices_being_attached


class ClusterObjects(NamedTuple):
    """The objects that are counted."""

    slices: Sequence[ResourceSlice] = ()
    claims: Sequence[ResourceClaim] = ()
    classes: Sequence[DeviceClass] = ()
    rules: Sequence[DeviceTaintRule] = ()


class Wanted(NamedTuple):
    """Which devices to count; None: all."""

    driver: str | None = None
    pool: str | None = None
    node: str | None = None
    partition_type_attribute: str | None = None
    class_name: str | None = None

    @property
    def is_filter(self) -> bool:
        return any((self.driver, self.pool, self.node, self.class_name))


class Counts(ApiObject, frozen=True):
    """The devices of something that has a name, counted."""

    name: str = always(str)
    total_devices: int = always(int)
    allocated_devices: int = always(int)
    available_devices: int = always(int)
    unavailable_devices: int = always(int)


COUNTED: Final = ("total_devices", "allocated_devices", "available_devices", "unavailable_devices")
Row = TypeVar("Row", bound=Counts)


class DriverRow(Counts, frozen=True):
    """The devices of a driver in all its pools. Those of incomplete pools are not known."""

    pools: int = always(int)
    faulty_pools: int = always(int)


class NodeRow(Counts, frozen=True):
    """The devices on one node; without a name, those that are not on one node in particular."""


class ClassRow(Counts, frozen=True):
    """The devices a class selects."""

    error: str | None = None
    """Why this is unknown for some device, which is then not counted."""


class PoolRow(PoolStatus, frozen=True):
    """A pool. Its available devices are those that can be had at the same time."""

    free_devices: int | None = None
    """Devices that nothing holds or keeps away, one by one; more than are available if they share counters."""
    attaching_devices: int = 0
    """Allocated devices whose binding conditions are not True yet (KEP-5007)."""


class TotalRow(Counts, frozen=True):
    """All pools together."""

    pools: int = always(int)
    faulty_pools: int = always(int)


PoolsRow = TypeVar("PoolsRow", DriverRow, TotalRow)


class Availability(ApiObject, frozen=True):
    """All of it, each part sorted by name."""

    total: TotalRow = always(TotalRow)
    drivers: tuple[DriverRow, ...] = always(tuple)
    pools: tuple[PoolRow, ...] = always(tuple)
    nodes: tuple[NodeRow, ...] = always(tuple)
    classes: tuple[ClassRow, ...] = always(tuple)


class _Pool(NamedTuple):
    """A pool, and those of its devices that are wanted."""

    census: PoolAvailability
    status: PoolStatus
    devices: tuple[CountedDevice, ...]
    counters_left: CounterBudget
    is_refused: bool
    """Whether allocation refuses the pool, so that nothing of it is available."""

    def counts(self, devices: Collection[CountedDevice]) -> tuple[int, ...]:
        """The figures of some of its devices, in the order of `COUNTED`, and how many are free one by one."""
        states = Counter(counted.state for counted in devices)
        free = [
            counted.device for counted in devices if counted.state is DeviceAvailability.AVAILABLE
        ]
        unavailable = states[DeviceAvailability.UNAVAILABLE]
        if self.is_refused:
            free, unavailable = [], unavailable + len(free)
        at_once = count_at_once(free, self.counters_left)
        return len(devices), states[DeviceAvailability.ALLOCATED], at_once, unavailable, len(free)


class _Selection:
    """The devices that a class selects."""

    def __init__(self, class_: DeviceClass) -> None:
        self.name = class_.metadata.name
        self.error: str | None = None
        self._selectors = [
            LazySelector(f"selector {number}", selector)
            for number, selector in enumerate(class_.spec.selectors, 1)
        ]

    def __call__(self, counted: CountedDevice) -> bool:
        device = PoolDevice(counted.slice, counted.device)
        try:
            return all(selector.matches(device) for selector in self._selectors)
        except AllocationError as error:
            self.error = self.error or str(error)
            return False


def availability(objects: ClusterObjects, wanted: Wanted, gates: FeatureGates) -> Availability:
    """The figures, from nothing but the objects. `UnknownClassError`."""
    selections = _selections(objects.classes, wanted.class_name)
    pools = [
        pool
        for pool in _pools(objects, wanted, gates, selections)
        if pool.devices or not (wanted.node or wanted.class_name)
    ]
    attaching = devices_being_attached(objects.claims)
    rows = tuple(_pool_row(pool, attaching) for pool in pools)
    return Availability(
        total=_total(rows),
        drivers=_by_driver(rows),
        pools=rows,
        nodes=_by_node(pools),
        classes=_by_class(pools, selections, only_found=wanted.is_filter),
    )


def _selections(classes: Iterable[DeviceClass], wanted: str | None) -> list[_Selection]:
    found = {class_.metadata.name: class_ for class_ in classes}
    if wanted is not None:
        if wanted not in found:
            raise UnknownClassError(wanted, found)
        return [_Selection(found[wanted])]
    return [_Selection(found[name]) for name in sorted(found)]


def _pools(
    objects: ClusterObjects,
    wanted: Wanted,
    gates: FeatureGates,
    selections: Sequence[_Selection],
) -> Iterator[_Pool]:
    ledger = Ledger(gates)
    for index, claim in enumerate(objects.claims):
        if claim.status.allocation is not None:
            ledger.add(f"{claim.key}#{index}", claim.status.allocation)
    rules = objects.rules if DEVICE_TAINT_RULES in gates else ()
    for id_, slices in newest_slices(objects.slices, wanted.driver, wanted.pool).items():
        census = pool_availability(id_, slices, ledger, rules)
        status = pool_status(census, ledger, wanted.partition_type_attribute, gates)
        devices = tuple(
            counted
            for counted in census.devices
            if wanted.node in (None, census.node_name, counted.node_name)
            and (wanted.class_name is None or selections[0](counted))
        )
        has_free = any(counted.state is DeviceAvailability.AVAILABLE for counted in census.devices)
        is_refused = has_free and status.available_devices == 0
        yield _Pool(census, status, devices, counters_left(census), is_refused)


def _pool_row(pool: _Pool, attaching: Container[DeviceId]) -> PoolRow:
    status = pool.status
    row = PoolRow(**{name: getattr(status, name) for name in status.__struct_fields__})
    if pool.census.is_incomplete:
        return row
    *counts, free = pool.counts(pool.devices)
    id_ = pool.census.id
    waiting = sum(id_.device_id(counted.device.name) in attaching for counted in pool.devices)
    row = replace(
        row,
        **dict(zip(COUNTED, counts, strict=True)),
        free_devices=free,
        attaching_devices=waiting,
    )
    if len(pool.devices) == len(pool.census.devices):
        return row
    return replace(row, partition_summary=(), shareable_summary=None)  # of all its devices


def _total(pools: Iterable[PoolRow]) -> TotalRow:
    total = TotalRow(name="total")
    for pool in pools:
        total = _with_pool(total, pool)
    return total


def _by_driver(pools: Iterable[PoolRow]) -> tuple[DriverRow, ...]:
    rows: dict[str, DriverRow] = {}
    for pool in pools:
        row = rows.get(pool.driver) or DriverRow(name=pool.driver)
        rows[pool.driver] = _with_pool(row, pool)
    return tuple(rows.values())


def _with_pool(row: PoolsRow, pool: PoolRow) -> PoolsRow:
    counts = [getattr(pool, name) or 0 for name in COUNTED]
    return replace(
        _plus(row, counts),
        pools=row.pools + 1,
        faulty_pools=row.faulty_pools + (pool.validation_error is not None),
    )


def _by_node(pools: Iterable[_Pool]) -> tuple[NodeRow, ...]:
    rows: dict[str, NodeRow] = {}
    for pool in pools:
        if pool.census.is_incomplete:
            continue
        devices_by_node: dict[str, list[CountedDevice]] = {}
        for counted in pool.devices:
            name = pool.census.node_name or counted.node_name
            devices_by_node.setdefault(name, []).append(counted)
        for name, devices in devices_by_node.items():
            row = rows.get(name) or NodeRow(name=name)
            rows[name] = _plus(row, pool.counts(devices))
    return tuple(rows[name] for name in sorted(rows))


def _by_class(
    pools: Sequence[_Pool], selections: Iterable[_Selection], *, only_found: bool
) -> tuple[ClassRow, ...]:
    """Classes that select none of these devices are left out."""
    rows = []
    for selects in selections:
        row = ClassRow(name=selects.name)
        for pool in pools:
            if not pool.census.is_incomplete:
                row = _plus(row, pool.counts([each for each in pool.devices if selects(each)]))
        row = replace(row, error=selects.error)
        if row.total_devices or row.error or not only_found:
            rows.append(row)
    return tuple(rows)


def _plus(row: Row, counts: Iterable[int]) -> Row:
    """The row with counts in the order of `COUNTED` added."""
    return replace(
        row,
        **{name: getattr(row, name) + more for name, more in zip(COUNTED, counts, strict=False)},
    )
