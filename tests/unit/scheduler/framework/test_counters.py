"""A counter of ours shows what one of the Prometheus client shows."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, generate_latest

from allot.scheduler.core.unschedulable_pods import SubQueue
from allot.scheduler.framework.counters import QuickCounter


def test_it_shows_the_same_page() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    quick = QuickCounter("c", "A metric.", ("queue", "event"), ours)
    usual = Counter("c", "A metric.", ("queue", "event"), registry=theirs)

    def lines(registry: CollectorRegistry) -> list[str]:
        page = generate_latest(registry).decode().splitlines()
        return sorted(line for line in page if "_created" not in line)

    assert lines(ours) == lines(theirs)
    for labels in ((SubQueue.ACTIVE, "PodAdd"), (SubQueue.GATED, 'a "b"'), ("active", "PodAdd")):
        quick.inc(*labels)
        usual.labels(*labels).inc()
    assert lines(ours) == lines(theirs)
