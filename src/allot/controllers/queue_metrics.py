"""Metrics of work queues, under Kubernetes' names."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from allot.client.work_queue import QueueObserver

_SECONDS: Final = tuple(1e-8 * 10**power for power in range(10))


class QueueMetrics:
    """The work queues of one process, by name."""

    def __init__(self, registry: CollectorRegistry) -> None:
        label = ("name",)
        self._queues: dict[str, _OneQueue] = {}
        self.depth = Gauge("workqueue_depth", "Items that wait.", label, registry=registry)
        self.adds = Counter("workqueue_adds", "Items that were queued.", label, registry=registry)
        self.retries = Counter(
            "workqueue_retries", "Items that came back after a failure.", label, registry=registry
        )
        self.waited = Histogram(
            "workqueue_queue_duration_seconds",
            "How long items waited.",
            label,
            buckets=_SECONDS,
            registry=registry,
        )
        self.worked = Histogram(
            "workqueue_work_duration_seconds",
            "How long items were worked on.",
            label,
            buckets=_SECONDS,
            registry=registry,
        )

    def of(self, name: str) -> QueueObserver:
        found = self._queues.get(name)
        if found is None:
            found = self._queues[name] = _OneQueue(self, name)
        return found


class _OneQueue(QueueObserver):
    def __init__(self, metrics: QueueMetrics, name: str) -> None:
        self._depth = 0
        metrics.depth.labels(name).set_function(lambda: self._depth)
        self._adds = metrics.adds.labels(name)
        self._retries = metrics.retries.labels(name)
        self._waited = metrics.waited.labels(name)
        self._worked = metrics.worked.labels(name)

    def added(self) -> None:
        self._adds.inc()
        self._depth += 1

    def retried(self) -> None:
        self._retries.inc()

    def taken(self, waited_seconds: float) -> None:
        self._depth -= 1
        self._waited.observe(waited_seconds)

    def finished(self, worked_seconds: float) -> None:
        self._worked.observe(worked_seconds)
