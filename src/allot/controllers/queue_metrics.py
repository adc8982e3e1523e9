"""Metrics of work queues, under Kubernetes' names.

They are written for every item, and put together when they are read.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from allot.client.work_queue import QueueObserver

_SECONDS: Final = tuple(1e-8 * 10**power for power in range(10))
_BOUNDS: Final = (*map(floatToGoString, _SECONDS), "+Inf")
_LABEL: Final = ("name",)


class QueueMetrics(Collector):
    """The work queues of one process, by name."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._queues: dict[str, _OneQueue] = {}
        registry.register(self)

    def of(self, name: str) -> QueueObserver:
        found = self._queues.get(name)
        if found is None:
            found = self._queues[name] = _OneQueue()
        return found

    def describe(self) -> Iterator[Metric]:
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        queues = tuple(self._queues.items())
        depth = GaugeMetricFamily("workqueue_depth", "Items that wait.", labels=_LABEL)
        adds = CounterMetricFamily("workqueue_adds", "Items that were queued.", labels=_LABEL)
        retries = CounterMetricFamily(
            "workqueue_retries", "Items that came back after a failure.", labels=_LABEL
        )
        for name, queue in queues:
            depth.add_metric((name,), queue.depth)
            adds.add_metric((name,), queue.adds, created=queue.since)
            retries.add_metric((name,), queue.retries, created=queue.since)
        yield from (depth, adds, retries)
        yield _histogram(
            "workqueue_queue_duration_seconds",
            "How long items waited.",
            {name: (queue.waited, queue.since) for name, queue in queues},
        )
        yield _histogram(
            "workqueue_work_duration_seconds",
            "How long items were worked on.",
            {name: (queue.worked, queue.since) for name, queue in queues},
        )


class _OneQueue(QueueObserver):
    def __init__(self) -> None:
        self.since = time.time()
        self.depth = self.adds = self.retries = 0
        self.waited = _Durations()
        self.worked = _Durations()

    def added(self) -> None:
        self.adds += 1
        self.depth += 1

    def retried(self) -> None:
        self.retries += 1

    def taken(self, waited_seconds: float) -> None:
        self.depth -= 1
        self.waited.observe(waited_seconds)

    def finished(self, worked_seconds: float) -> None:
        self.worked.observe(worked_seconds)


class _Durations:
    """Counts durations by the bounds of a histogram."""

    def __init__(self) -> None:
        self._counts = [0] * len(_BOUNDS)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(_SECONDS, seconds)] += 1
        self.total += seconds

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """How many durations are within each bound."""
        return [*zip(_BOUNDS, map(float, accumulate(self._counts)), strict=True)]


def _histogram(
    name: str, text: str, durations_by_queue: dict[str, tuple[_Durations, float]]
) -> Metric:
    family = HistogramMetricFamily(name, text, labels=_LABEL)
    for queue, (durations, since) in durations_by_queue.items():
        family.add_metric((queue,), durations.buckets, durations.total)
        family.add_sample(f"{name}_created", {"name": queue}, since)
    return family
