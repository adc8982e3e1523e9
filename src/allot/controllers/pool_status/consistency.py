"""Contradictions between the slices of one pool (KEP-5677: cross-slice validation).

The API server validates one slice at a time. The allocator rejects most pools whose slices contradict each other.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.api.slices import ResourceSlice
from allot.client.steps import Steps
from allot.controllers.pool_status.device_availability import DEVICES_AT_ONCE, PoolAvailability

MAX_CONTRADICTIONS: Final = 20
"""More than a status shows."""


class Contradiction(NamedTuple):
    """One contradiction, as a sentence that names the device, counter set or counter."""

    text: str
    is_refused: bool = True
    """Whether the allocator rejects the whole pool because of it."""


def finding_contradictions(census: PoolAvailability) -> Steps[list[Contradiction]]:
    """The first few contradictions of a complete pool, in steps."""
    found: list[Contradiction] = []
    announced: set[int] = set()
    for slice_ in census.slices:
        announced.add(slice_.spec.pool.resource_slice_count)
    too_many = len(census.slices) > census.announced
    if len(announced) > 1:
        numbers = ", ".join(map(str, sorted(announced)[:MAX_CONTRADICTIONS]))
        text = f"slices disagree about how many of them there are: {numbers}"
        found.append(Contradiction(text, is_refused=too_many))
    elif too_many:
        text = f"{len(census.slices)} slices are there, {census.announced} announced"
        found.append(Contradiction(text))
    yield from _find_repeated_devices(census, found)
    yield from _find_counter_trouble(census, found)
    return found[:MAX_CONTRADICTIONS]


def _find_repeated_devices(census: PoolAvailability, found: list[Contradiction]) -> Steps[None]:
    slice_by_device: dict[str, ResourceSlice] = {}
    reported: set[str] = set()
    for position, counted in enumerate(census.devices, 1):
        name, slice_ = counted.device.name, counted.slice
        first = slice_by_device.setdefault(name, slice_)
        if first is not slice_ and name not in reported:
            reported.add(name)
            text = f"device {name} appears in multiple slices"
            found.append(Contradiction(text, is_refused=_may_meet(first, slice_)))
            if len(found) >= MAX_CONTRADICTIONS:
                return
        if not position % DEVICES_AT_ONCE:
            yield


def _may_meet(one: ResourceSlice, other: ResourceSlice) -> bool:
    """Whether both slices may be available on one node. The allocator uses the slices of one node at a time."""
    nodes = one.spec.node_name, other.spec.node_name
    return not all(nodes) or nodes[0] == nodes[1]


def _find_counter_trouble(census: PoolAvailability, found: list[Contradiction]) -> Steps[None]:
    counters: dict[str, set[str]] = {}
    for slice_ in census.slices:
        for counter_set in slice_.spec.shared_counters or ():
            if counter_set.name in counters:
                text = f"counter set {counter_set.name} appears in multiple slices"
                found.append(Contradiction(text))
            counters.setdefault(counter_set.name, set()).update(counter_set.counters)
    for position, counted in enumerate(census.devices, 1):
        if len(found) >= MAX_CONTRADICTIONS:
            return
        name = counted.device.name
        for use in counted.device.consumes_counters:
            known = counters.get(use.counter_set)
            if known is None:
                text = f"device {name} uses unknown counter set {use.counter_set}"
                found.append(Contradiction(text))
                continue
            found.extend(
                Contradiction(f"device {name} uses unknown counter {use.counter_set}/{counter}")
                for counter in sorted(use.counters.keys() - known)
            )
        if not position % DEVICES_AT_ONCE:
            yield
