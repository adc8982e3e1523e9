"""Partitions by type: how many exist, and how many more the counters allow (KEP-4815).

Each type is counted independently of the others: one more Full *or* two more Halves, not both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from allot.allocation.kubernetes_texts import quoted
from allot.allocation.pools import CounterBudget
from allot.api.pool_status import PartitionTypeStatus
from allot.api.slices import Device
from allot.cel.device import split_name
from allot.client.steps import Steps, finish
from allot.controllers.pool_status.device_availability import DEVICES_AT_ONCE, PoolAvailability

MAX_SUMMARIES: Final = 32


_Cost = tuple[tuple[str, str, int], ...]


class SummaryError(Exception):
    """A summary cannot be calculated. The message begins with a machine-readable reason."""


class _Group(NamedTuple):
    """Partitions of one type. Sorts by attribute, then type."""

    attribute: str
    type: str


def summing_up_partitions(
    census: PoolAvailability,
    default_attribute: str | None,
    *,
    blocks_taints: bool = True,
    any_counter_set: bool = True,
) -> Steps[tuple[PartitionTypeStatus, ...]]:
    """One entry per type, sorted, in steps; empty without a type attribute. Raises `SummaryError`.

    Tainted partitions are not allocatable, unless `blocks_taints` is false. Partitions of one type have to consume the
    same counters; of the same counter sets, unless `any_counter_set`.
    """
    devices_by_group = yield from _grouping(census, default_attribute, any_counter_set)
    if not devices_by_group:
        return ()
    left = yield from counting_counters_left(census)
    if len(devices_by_group) > MAX_SUMMARIES:
        raise SummaryError(
            f"PartitionSummaryOverCap: pool {census.id} has {len(devices_by_group)} partition types,"
            f" exceeding the maximum of {MAX_SUMMARIES}"
        )
    blocked = (
        {counted.device.name for counted in census.devices if counted.is_tainted}
        if blocks_taints
        else frozenset()
    )
    summary: list[PartitionTypeStatus] = []
    for group, devices in sorted(devices_by_group.items()):
        allocatable = yield from counting_how_many_fit(
            (
                device
                for device in devices
                if device.name not in census.taken and device.name not in blocked
            ),
            left,
        )
        summary.append(PartitionTypeStatus(group.attribute, group.type, len(devices), allocatable))
    return tuple(summary)


def _grouping(
    census: PoolAvailability, default_attribute: str | None, any_counter_set: bool
) -> Steps[dict[_Group, list[Device]]]:
    """Partitions by type, in the order of the slices. Raises the error of the first device that has one, as v1.38 does."""
    declared = any(slice_.spec.partition_type_attribute for slice_ in census.slices)
    has_counters = any(slice_.spec.shared_counters for slice_ in census.slices)
    groups: dict[_Group, list[Device]] = {}
    costs: dict[_Group, _Cost] = {}
    for position, (slice_, device, *_) in enumerate(census.devices, 1):
        if not position % DEVICES_AT_ONCE:
            yield
        # The default is for pools whose driver does not set the field in any slice.
        attribute = slice_.spec.partition_type_attribute if declared else default_attribute
        if not attribute or not device.consumes_counters:
            continue
        if not has_counters:
            raise SummaryError(
                f"PartitionTypeMissing: pool {census.id} declares partitionTypeAttribute"
                " but publishes no sharedCounters"
            )
        type_ = _string_attribute(device, attribute, slice_.spec.driver)
        if not type_:
            raise SummaryError(
                f"PartitionTypeMissing: device {quoted(device.name)} in pool {census.id}"
                f" does not carry partition type attribute {quoted(attribute)}"
            )
        group, cost = _Group(attribute, type_), _cost(device, any_counter_set)
        if costs.setdefault(group, cost) != cost:
            raise SummaryError(
                f"PartitionCostMismatch: devices of partition type {quoted(type_)}"
                f" in pool {census.id} consume different counters"
            )
        groups.setdefault(group, []).append(device)
    return groups


def _string_attribute(device: Device, name: str, driver: str) -> str | None:
    wanted = split_name(name, driver)
    for written, attribute in device.attributes.items():
        if split_name(written, driver) == wanted:
            return attribute.string
    return None


def counter_uses(device: Device) -> Iterator[tuple[str, str, int]]:
    for use in device.consumes_counters:
        for name, counter in use.counters.items():
            yield use.counter_set, name, counter.value.nanos


def _cost(device: Device, any_counter_set: bool) -> _Cost:
    """The counters that the device consumes; without counter sets, partitions of different physical devices compare equal."""
    return tuple(
        sorted(
            ("" if any_counter_set else set_name, name, amount)
            for set_name, name, amount in counter_uses(device)
        )
    )


def counting_counters_left(census: PoolAvailability) -> Steps[CounterBudget]:
    """The rest of a pool's counters after all allocated devices, in steps."""
    left: CounterBudget = {}
    for slice_ in census.slices:
        for counter_set in slice_.spec.shared_counters or ():
            left[counter_set.name] = {
                name: counter.value.nanos for name, counter in counter_set.counters.items()
            }
    in_use = {
        counted.device.name: counted.device
        for counted in census.devices
        if counted.device.name in census.taken
    }
    for position, device in enumerate(in_use.values(), 1):
        for set_name, name, amount in counter_uses(device):
            if name in left.get(set_name, ()):
                left[set_name][name] -= amount
        if not position % DEVICES_AT_ONCE:
            yield
    return left


def counters_left(census: PoolAvailability) -> CounterBudget:
    """`counting_counters_left` at once."""
    return finish(counting_counters_left(census))


def counting_how_many_fit(devices: Iterable[Device], counters: CounterBudget) -> Steps[int]:
    """How many devices the counters allow at the same time, taken in this order, in steps."""
    left = {set_name: dict(amounts) for set_name, amounts in counters.items()}
    count = 0
    for position, device in enumerate(devices, 1):
        uses = list(counter_uses(device))
        if all(left.get(set_name, {}).get(name, -1) >= amount for set_name, name, amount in uses):
            count += 1
            for set_name, name, amount in uses:
                left[set_name][name] -= amount
        if not position % DEVICES_AT_ONCE:
            yield
    return count
