"""Availability: the figures of the pool status controller, summed by pool, driver, node and class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from allot.allocation.candidates import LazySelector
from allot.allocation.devices import PoolDevice
from allot.allocation.errors import AllocationError
from allot.allocation.ledger import Ledger
from allot.api.base import ApiObject, always, replace
from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.pool_status import PoolStatus
from allot.api.slices import ResourceSlice
from allot.controllers.pool_status import (
    DeviceState,
    PoolCensus,
    newest_slices,
    pool_status,
    take_census,
)
from allot.features import DEVICE_TAINT_RULES, FeatureGates


class ClusterObjects(NamedTuple):
    """What the figures are made from."""

    slices: Sequence[ResourceSlice] = ()
    claims: Sequence[ResourceClaim] = ()
    classes: Sequence[DeviceClass] = ()
    rules: Sequence[DeviceTaintRule] = ()


class Wanted(NamedTuple):
    """Which pools to look at; None: any."""

    driver: str | None = None
    pool: str | None = None
    node: str | None = None
    partition_type_attribute: str | None = None


class Counts(ApiObject, frozen=True):
    """The devices of something that has a name, counted."""

    name: str = always(str)
    total_devices: int = always(int)
    allocated_devices: int = always(int)
    available_devices: int = always(int)
    unavailable_devices: int = always(int)


COUNTED: Final = Counts.__struct_fields__[1:]
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
    """Why that cannot be said of some device, which is then not counted."""


class Availability(ApiObject, frozen=True):
    """All of it, each part sorted by name."""

    drivers: tuple[DriverRow, ...] = always(tuple)
    pools: tuple[PoolStatus, ...] = always(tuple)
    nodes: tuple[NodeRow, ...] = always(tuple)
    classes: tuple[ClassRow, ...] = always(tuple)


_FIELD_BY_STATE: Final = {
    DeviceState.ALLOCATED: "allocated_devices",
    DeviceState.AVAILABLE: "available_devices",
    DeviceState.UNAVAILABLE: "unavailable_devices",
}


def availability(objects: ClusterObjects, wanted: Wanted, gates: FeatureGates) -> Availability:
    """The figures, from nothing but the objects."""
    ledger = Ledger(gates)
    for index, claim in enumerate(objects.claims):
        if claim.status.allocation is not None:
            ledger.add(
                f"{claim.metadata.namespace}/{claim.metadata.name}#{index}", claim.status.allocation
            )
    rules = objects.rules if DEVICE_TAINT_RULES in gates else ()
    censuses = [
        census
        for pool, slices in newest_slices(objects.slices, wanted.driver, wanted.pool).items()
        if _is_on(wanted.node, census := take_census(pool, slices, ledger, rules))
    ]
    pools = tuple(
        pool_status(census, ledger, wanted.partition_type_attribute) for census in censuses
    )
    return Availability(
        drivers=_by_driver(pools),
        pools=pools,
        nodes=_by_node(censuses, pools, wanted.node),
        classes=_by_class(censuses, objects.classes, wanted.node),
    )


def _is_on(node: str | None, census: PoolCensus) -> bool:
    return node in (None, census.node_name) or any(
        counted.node_name == node for counted in census.devices
    )


def _by_driver(pools: Iterable[PoolStatus]) -> tuple[DriverRow, ...]:
    rows: dict[str, DriverRow] = {}
    for pool in pools:
        row = rows.get(pool.driver) or DriverRow(name=pool.driver)
        rows[pool.driver] = replace(
            _plus(row, pool),
            pools=row.pools + 1,
            faulty_pools=row.faulty_pools + (pool.validation_error is not None),
        )
    return tuple(rows.values())


def _by_node(
    censuses: Iterable[PoolCensus], pools: Iterable[PoolStatus], wanted: str | None
) -> tuple[NodeRow, ...]:
    rows: dict[str, NodeRow] = {}
    for census, pool in zip(censuses, pools, strict=True):
        if census.is_incomplete:
            continue
        if census.node_name is not None:
            row = rows.get(census.node_name) or NodeRow(name=census.node_name)
            rows[census.node_name] = _plus(row, pool)
            continue
        for counted in census.devices:
            name = counted.node_name
            rows[name] = _plus_one(rows.get(name) or NodeRow(name=name), counted.state)
    return tuple(rows[name] for name in sorted(rows) if wanted in (None, name))


def _by_class(
    censuses: Iterable[PoolCensus], classes: Iterable[DeviceClass], node: str | None
) -> tuple[ClassRow, ...]:
    devices = [
        (PoolDevice(counted.slice, counted.device, ()), counted.state)
        for census in censuses
        if not census.is_incomplete
        for counted in census.devices
        if node in (None, counted.node_name)
    ]
    ordered = sorted(classes, key=lambda class_: class_.metadata.name)
    return tuple(_class_row(class_, devices) for class_ in ordered)


def _class_row(class_: DeviceClass, devices: Iterable[tuple[PoolDevice, DeviceState]]) -> ClassRow:
    selectors = [
        LazySelector(f"selector {number}", selector)
        for number, selector in enumerate(class_.spec.selectors, 1)
    ]
    row = ClassRow(name=class_.metadata.name)
    for device, state in devices:
        try:
            if all(selector.matches(device) for selector in selectors):
                row = _plus_one(row, state)
        except AllocationError as error:
            row = row if row.error else replace(row, error=str(error))
    return row


def _plus_one(row: Row, state: DeviceState) -> Row:
    field = _FIELD_BY_STATE[state]
    return replace(row, total_devices=row.total_devices + 1, **{field: getattr(row, field) + 1})


def _plus(row: Row, pool: PoolStatus) -> Row:
    return replace(
        row,
        **{name: getattr(row, name) + (getattr(pool, name) or 0) for name in COUNTED},
    )
