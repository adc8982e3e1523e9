"""What the slices of one pool say that cannot be true together (KEP-5677: cross-slice validation).

The API server sees one slice at a time; allocation passes such a pool over. Here somebody hears of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from allot.controllers.pool_status.census import PoolCensus


def contradictions(census: PoolCensus) -> Iterator[str]:
    """Each as a sentence that names the culprit. Of a complete pool."""
    announced = {slice_.spec.pool.resource_slice_count for slice_ in census.slices}
    if len(announced) > 1:
        numbers = ", ".join(map(str, sorted(announced)))
        yield f"slices disagree about how many of them there are: {numbers}"
    elif len(census.slices) > census.announced:
        yield f"{len(census.slices)} slices are there, {census.announced} announced"
    yield from _repeated_devices(census)
    yield from _counter_trouble(census)


def _repeated_devices(census: PoolCensus) -> Iterator[str]:
    slice_by_device: dict[str, str] = {}
    told: set[str] = set()
    for slice_, device, _ in census.devices:
        first = slice_by_device.setdefault(device.name, slice_.metadata.name)
        if first != slice_.metadata.name and device.name not in told:
            told.add(device.name)
            yield f"device {device.name} appears in multiple slices"


def _counter_trouble(census: PoolCensus) -> Iterator[str]:
    counters: dict[str, set[str]] = {}
    for slice_ in census.slices:
        for counter_set in slice_.spec.shared_counters or ():
            if counter_set.name in counters:
                yield f"counter set {counter_set.name} appears in multiple slices"
            counters.setdefault(counter_set.name, set()).update(counter_set.counters)
    for counted in census.devices:
        for use in counted.device.consumes_counters:
            known = counters.get(use.counter_set)
            if known is None:
                yield f"device {counted.device.name} uses unknown counter set {use.counter_set}"
                continue
            for name in sorted(use.counters.keys() - known):
                yield f"device {counted.device.name} uses unknown counter {use.counter_set}/{name}"
