"""Slices of one pool that contradict each other. The API server validates one slice at a time; the allocator refuses
such pools, or cannot use some of their devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allot.api.slices import Counter, Device, ResourceSlice
from allot.features import FeatureGates
from allot.lint import rule_table as rules
from allot.lint.findings import Problem
from allot.lint.known_objects import KnownObjects
from allot.lint.spelling import did_you_mean
from allot.lint.subjects import LintSubject


def pool_contradictions(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    slice_ = subject.object
    if not isinstance(slice_, ResourceSlice):
        return
    slices = known.slices_of_pool(slice_)
    if slice_ not in slices:
        return  # of an old generation
    yield from _slice_counts(slice_, slices)
    yield from _repeated_devices(slice_, slices)
    if (
        len(slices) >= slice_.spec.pool.resource_slice_count
    ):  # else counter sets may be missing here
        yield from _counters(slice_, slices)


def _slice_counts(slice_: ResourceSlice, slices: Sequence[ResourceSlice]) -> Iterator[Problem]:
    pool = slice_.spec.pool
    counts = sorted({each.spec.pool.resource_slice_count for each in slices})
    if len(counts) > 1:
        told = " and ".join(map(str, counts))
        text = f"the slices of pool {pool.name} announce different numbers of slices: {told}"
    elif len(slices) > pool.resource_slice_count:
        text = (
            f"pool {pool.name} has {len(slices)} slices, and {pool.resource_slice_count} announced"
        )
    else:
        return
    yield Problem(rules.POOL_CONTRADICTION, "spec.pool.resourceSliceCount", text)


def _repeated_devices(slice_: ResourceSlice, slices: Sequence[ResourceSlice]) -> Iterator[Problem]:
    others = {
        device.name: other.metadata.name
        for other in slices
        if other is not slice_ and _may_meet(slice_, other)
        for device in other.spec.devices or ()
    }
    for index, device in enumerate(slice_.spec.devices or ()):
        if device.name in others:
            yield Problem(
                rules.POOL_CONTRADICTION,
                f"spec.devices[{index}].name",
                f"device {device.name} is also in slice {others[device.name]} of the same pool",
            )


def _may_meet(one: ResourceSlice, other: ResourceSlice) -> bool:
    """Whether both slices may be available on one node."""
    nodes = one.spec.node_name, other.spec.node_name
    return not all(nodes) or nodes[0] == nodes[1]


def _counters(slice_: ResourceSlice, slices: Sequence[ResourceSlice]) -> Iterator[Problem]:
    sets = {
        counter_set.name: counter_set.counters
        for each in slices
        for counter_set in each.spec.shared_counters or ()
    }
    for index, device in enumerate(slice_.spec.devices or ()):
        for number, use in enumerate(device.consumes_counters):
            path = f"spec.devices[{index}].consumesCounters[{number}]"
            counters = sets.get(use.counter_set)
            if counters is None:
                hint = did_you_mean(use.counter_set, sets)
                text = f'no slice of the pool has the counter set "{use.counter_set}"{hint}'
                yield Problem(rules.POOL_CONTRADICTION, f"{path}.counterSet", text)
                continue
            for name, amount in use.counters.items():
                where = f"{path}.counters[{name}]"
                yield from _counter_use(
                    device, f"{use.counter_set}/{name}", amount, counters.get(name), where
                )


def _counter_use(
    device: Device, name: str, used: Counter, total: Counter | None, path: str
) -> Iterator[Problem]:
    if total is None:
        yield Problem(rules.POOL_CONTRADICTION, path, f"the pool has no counter {name}")
    elif used.value > total.value:
        text = f"{device.name} consumes {used.value} of {name}, which has {total.value}: it is never allocated"
        yield Problem(rules.COUNTER_AMOUNT, f"{path}.value", text)
