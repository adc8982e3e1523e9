"""How much of a node's devices is used, now and with further allocations.

The unit is a physical device: a device without counters, or the partitions that share a counter set (KEP-4815).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from allot.allocation import Ledger
from allot.allocation.devices import PoolDevice
from allot.allocation.inventory import NodeView
from allot.allocation.pools import Pool
from allot.api.claims import AllocationResult, DeviceRequestAllocationResult
from allot.api.identities import DeviceId
from allot.api.slices import Device

Group = tuple[str, object]
"""An attribute and a value: devices that have it are side by side, such as on one PCIe root."""


class UnitUsage(NamedTuple):
    """How much of a unit is used, from 0 to 1; `skew` is how much more is left of it on average than of what is scarcest."""

    used: float = 0.0
    skew: float = 0.0


class Unit(NamedTuple):
    """A physical device."""

    driver: str
    before: UnitUsage
    after: UnitUsage
    groups: frozenset[Group]


class NodeUsage(NamedTuple):
    """The devices of a node, and the drivers whose devices the pod gets there."""

    units: tuple[Unit, ...]
    drivers: frozenset[str]


def usage_on(
    view: NodeView,
    ledger: Ledger,
    planned: Iterable[AllocationResult],
    group_attributes: Sequence[str] = (),
) -> NodeUsage:
    """The usage of what a node can use, before and after the planned allocations. Tainted devices do not count."""
    results: dict[DeviceId, list[DeviceRequestAllocationResult]] = {}
    for allocation in planned:
        for result in allocation.devices.results:
            if not result.admin_access:
                results.setdefault(result.device_id, []).append(result)
    units = [
        unit
        for pool in view.pools
        if pool.is_usable
        for unit in (
            *_whole_devices(pool, ledger, results, group_attributes),
            *_counter_sets(pool, ledger, results, group_attributes),
        )
    ]
    return NodeUsage(tuple(units), frozenset(id_.driver for id_ in results))


Results = Mapping[DeviceId, Sequence[DeviceRequestAllocationResult]]


def _whole_devices(
    pool: Pool, ledger: Ledger, results: Results, group_attributes: Sequence[str]
) -> Iterator[Unit]:
    for device in pool.devices:
        if device.counter_uses or device.taints:
            continue
        planned = results.get(device.id, ())
        if device.shareable:
            before, after = _shares(device, ledger, planned)
        else:
            before = UnitUsage(1.0 if ledger.is_dedicated(device.id) else 0.0)
            after = UnitUsage(1.0) if planned else before
        groups = frozenset(groups_of(device.id.driver, device.device, group_attributes))
        yield Unit(device.id.driver, before, after, groups)


def _shares(
    device: PoolDevice, ledger: Ledger, planned: Sequence[DeviceRequestAllocationResult]
) -> tuple[UnitUsage, UnitUsage]:
    consumed = dict(ledger.consumed(device.id, device.capacity))
    total = {name: each.value.nanos for name, each in device.capacity if each.value.nanos > 0}
    is_held = ledger.has_share(device.id) or ledger.is_dedicated(device.id)
    before = _unit_usage(total, consumed, is_held=is_held)
    for result in planned:
        for name, amount in result.consumed_capacity.items():
            consumed[name] = consumed.get(name, 0) + amount.nanos
    return before, _unit_usage(total, consumed, is_held=is_held or bool(planned))


def _unit_usage(
    total: Mapping[str, int], consumed: Mapping[str, int], *, is_held: bool
) -> UnitUsage:
    """Of a shared device. Without a capacity it is used as soon as a claim holds a share."""
    if not total:
        return UnitUsage(1.0 if is_held else 0.0)
    used = [min(consumed.get(name, 0) / amount, 1.0) for name, amount in total.items()]
    return UnitUsage(max(used), max(used) - sum(used) / len(used))


def _counter_sets(
    pool: Pool, ledger: Ledger, results: Results, group_attributes: Sequence[str]
) -> Iterator[Unit]:
    if not pool.counters:
        return
    left = ledger.available(pool).counters
    groups: dict[str, set[Group]] = {}
    planned: dict[str, dict[str, int]] = {}
    is_tainted: set[str] = set()
    for device in pool.counted.values():
        for use in device.counter_uses:
            groups.setdefault(use.counter_set, set()).update(
                groups_of(device.id.driver, device.device, group_attributes)
            )
            if device.taints:
                is_tainted.add(use.counter_set)
            if device.id in results:
                amounts = planned.setdefault(use.counter_set, {})
                for name, amount in use.amounts.items():
                    amounts[name] = amounts.get(name, 0) + amount
    for name, total in pool.counters.items():
        if name in is_tainted:
            continue
        amounts = planned.get(name, {})
        after = {counter: each - amounts.get(counter, 0) for counter, each in left[name].items()}
        yield Unit(
            pool.id.driver,
            _counter_usage(total, left[name]),
            _counter_usage(total, after),
            frozenset(groups.get(name, ())),
        )


_ONE = 1_000_000_000


def _counter_usage(total: Mapping[str, int], left: Mapping[str, int]) -> UnitUsage:
    """The average of all counters. Counters of at most 1, such as memory slices, are positions, not amounts."""
    shares = {name: max(left[name], 0) / amount for name, amount in total.items() if amount > 0}
    if not shares:
        return UnitUsage()
    average = sum(shares.values()) / len(shares)
    amounts = [share for name, share in shares.items() if total[name] > _ONE]
    skew = sum(amounts) / len(amounts) - min(amounts) if amounts else 0.0
    return UnitUsage(1.0 - average, skew)


def groups_of(driver: str, device: Device, attributes: Sequence[str]) -> Iterator[Group]:
    """The groups of a device; several for a list of values (KEP-5491)."""
    for name in attributes:
        domain, _, own = name.rpartition("/")
        found = device.attributes.get(name)
        if found is None and domain == driver:
            found = device.attributes.get(own)
        if found is None:
            continue
        for value in (found.string, found.int_, found.version, found.bool_):
            if value is not None:
                yield name, value
        for values in (found.strings, found.ints, found.versions, found.bools):
            for value in values or ():
                yield name, value
