"""Metrics of work queues show what the Prometheus client's own would."""

from __future__ import annotations

import time

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as open_metrics

from allot.controllers.queue_metrics import QueueMetrics

SECONDS = (0.0, 1e-8, 2e-8, 0.001, 0.5, 10.0, 11.0)


def test_they_show_the_same_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.5)
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    quick, label = QueueMetrics(ours), ("name",)
    buckets = tuple(1e-8 * 10**power for power in range(10))
    depth = Gauge("workqueue_depth", "Items that wait.", label, registry=theirs)
    adds = Counter("workqueue_adds", "Items that were queued.", label, registry=theirs)
    retries = Counter(
        "workqueue_retries", "Items that came back after a failure.", label, registry=theirs
    )
    waited, worked = (
        Histogram(
            f"workqueue_{what}_duration_seconds", text, label, buckets=buckets, registry=theirs
        )
        for what, text in (
            ("queue", "How long items waited."),
            ("work", "How long items were worked on."),
        )
    )
    for name in ("b", "a"):
        queue = quick.of(name)
        assert quick.of(name) is queue
        for seconds in SECONDS:
            queue.added()
            queue.added()
            queue.taken(seconds)
            queue.finished(seconds * 2)
        queue.retried()
        depth.labels(name).set(len(SECONDS))
        adds.labels(name).inc(2 * len(SECONDS))
        retries.labels(name).inc()
        for seconds in SECONDS:
            waited.labels(name).observe(seconds)
            worked.labels(name).observe(seconds * 2)

    assert generate_latest(ours) == generate_latest(theirs)
    assert open_metrics(ours) == open_metrics(theirs)  # type: ignore[no-untyped-call]


def test_one_registry_has_them_once() -> None:
    registry = CollectorRegistry()
    QueueMetrics(registry)

    with pytest.raises(ValueError, match="Duplicated timeseries"):
        QueueMetrics(registry)
