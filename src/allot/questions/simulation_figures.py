"""The answer of a simulation: placements, pending pods, samples over time, and figures computed from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from allot.api.base import ApiObject, always

MAX_SAMPLES: Final = 2000
"""Moments in the answer; of more, the last of each interval is kept."""


class PlacedPod(ApiObject, frozen=True):
    """A pod that got a node."""

    pod: str = always(str)
    node: str = always(str)
    devices: tuple[str, ...] = always(tuple)
    """As `request: driver/pool/device`."""
    alternatives: str = ""
    at_seconds: float = 0.0
    waited_seconds: float = 0.0
    waits_for_devices: bool = False
    """Whether its devices must be made ready first (KEP-5007)."""


class PendingPod(ApiObject, frozen=True):
    """A pod that has no node at the end."""

    pod: str = always(str)
    reason: str = always(str)


class Sample(ApiObject, frozen=True):
    """The cluster at one moment."""

    seconds: float = always(float)
    running: int = always(int)
    waiting: int = always(int)
    utilisation: float = always(float)
    fragmentation: float = always(float)


class SimulationFigures(ApiObject, frozen=True):
    """A simulation in numbers; averages are over time."""

    pods_placed: int = always(int)
    pods_pending: int = always(int)
    pods_finished: int = always(int)
    preemptions: int = always(int)
    seconds: float = always(float)
    """From the beginning to the last event."""
    mean_utilisation: float = always(float)
    peak_utilisation: float = always(float)
    mean_fragmentation: float = always(float)
    mean_waiting: float = always(float)
    peak_waiting: int = always(int)
    median_wait_seconds: float = always(float)
    p99_wait_seconds: float = always(float)
    longest_wait_seconds: float = always(float)


class SimulationAnswer(ApiObject, frozen=True):
    """Placements, what stays pending and why, and figures."""

    placed: tuple[PlacedPod, ...] = always(tuple)
    pending: tuple[PendingPod, ...] = always(tuple)
    figures: SimulationFigures = always(SimulationFigures)
    timeline: tuple[Sample, ...] = always(tuple)
    """Of a simulation in virtual time."""
    notes: tuple[str, ...] = ()


def simulation_figures(
    samples: list[Sample], waits: list[float], pending: int, finished: int, preempted: int
) -> SimulationFigures:
    """The figures of a whole simulation. `waits` are the seconds that placed pods have waited."""
    ordered = sorted(waits)
    return SimulationFigures(
        pods_placed=len(waits),
        pods_pending=pending,
        pods_finished=finished,
        preemptions=preempted,
        seconds=samples[-1].seconds if samples else 0.0,
        mean_utilisation=_mean(samples, lambda each: each.utilisation),
        peak_utilisation=max((each.utilisation for each in samples), default=0.0),
        mean_fragmentation=_mean(samples, lambda each: each.fragmentation),
        mean_waiting=_mean(samples, lambda each: each.waiting),
        peak_waiting=max((each.waiting for each in samples), default=0),
        median_wait_seconds=_percentile(ordered, 0.5),
        p99_wait_seconds=_percentile(ordered, 0.99),
        longest_wait_seconds=ordered[-1] if ordered else 0.0,
    )


def _mean(samples: list[Sample], value: Callable[[Sample], float]) -> float:
    """The average over time; of a single moment, its value."""
    total = 0.0
    for sample, following in pairwise(samples):
        total += value(sample) * (following.seconds - sample.seconds)
    seconds = samples[-1].seconds - samples[0].seconds if samples else 0.0
    if not seconds:
        return round(value(samples[-1]), 4) if samples else 0.0
    return round(total / seconds, 4)


def _percentile(ordered: list[float], share: float) -> float:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def thinned(samples: list[Sample]) -> Iterator[Sample]:
    """At most `MAX_SAMPLES`, evenly over the time."""
    if len(samples) <= MAX_SAMPLES:
        yield from samples
        return
    width = (samples[-1].seconds - samples[0].seconds) / MAX_SAMPLES
    interval = -1
    kept: Sample | None = None
    for sample in samples:
        number = int((sample.seconds - samples[0].seconds) / width)
        if kept is not None and number != interval:
            yield kept
        interval, kept = number, sample
    if kept is not None:
        yield kept
