"""What the slices of one pool say that cannot be true together (KEP-5677: cross-slice validation).

The API server sees one slice at a time; allocation passes such a pool over. Here somebody hears of it.
"""

from __future__ import annotations

from typing import Final

from allot.client.pauses import Steps
from allot.controllers.pool_status.census import DEVICES_AT_ONCE, PoolCensus

MAX_CONTRADICTIONS: Final = 20
"""More than anyone is shown."""


def finding_contradictions(census: PoolCensus) -> Steps[list[str]]:
    """Each as a sentence that names the culprit, the first few of them, in steps. Of a complete pool."""
    found: list[str] = []
    announced: set[int] = set()
    for slice_ in census.slices:
        announced.add(slice_.spec.pool.resource_slice_count)
    if len(announced) > 1:
        numbers = ", ".join(map(str, sorted(announced)[:MAX_CONTRADICTIONS]))
        found.append(f"slices disagree about how many of them there are: {numbers}")
    elif len(census.slices) > census.announced:
        found.append(f"{len(census.slices)} slices are there, {census.announced} announced")
    yield from _find_repeated_devices(census, found)
    yield from _find_counter_trouble(census, found)
    return found[:MAX_CONTRADICTIONS]


def _find_repeated_devices(census: PoolCensus, found: list[str]) -> Steps[None]:
    slice_by_device: dict[str, str] = {}
    told: set[str] = set()
    for position, (slice_, device, _) in enumerate(census.devices, 1):
        first = slice_by_device.setdefault(device.name, slice_.metadata.name)
        if first != slice_.metadata.name and device.name not in told:
            told.add(device.name)
            found.append(f"device {device.name} appears in multiple slices")
            if len(found) >= MAX_CONTRADICTIONS:
                return
        if not position % DEVICES_AT_ONCE:
            yield


def _find_counter_trouble(census: PoolCensus, found: list[str]) -> Steps[None]:
    counters: dict[str, set[str]] = {}
    for slice_ in census.slices:
        for counter_set in slice_.spec.shared_counters or ():
            if counter_set.name in counters:
                found.append(f"counter set {counter_set.name} appears in multiple slices")
            counters.setdefault(counter_set.name, set()).update(counter_set.counters)
    for position, counted in enumerate(census.devices, 1):
        if len(found) >= MAX_CONTRADICTIONS:
            return
        name = counted.device.name
        for use in counted.device.consumes_counters:
            known = counters.get(use.counter_set)
            if known is None:
                found.append(f"device {name} uses unknown counter set {use.counter_set}")
                continue
            found.extend(
                f"device {name} uses unknown counter {use.counter_set}/{counter}"
                for counter in sorted(use.counters.keys() - known)
            )
        if not position % DEVICES_AT_ONCE:
            yield
