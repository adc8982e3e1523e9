"""A histogram of ours shows what one of the Prometheus client shows."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Histogram, generate_latest

from allot.scheduler.framework.histograms import QuickHistogram

BUCKETS = (0.001, 0.01, 1.0)
VALUES = (0.0, 0.001, 0.0011, 0.5, 1.0, 1.5, 100.0)


def test_it_shows_the_same_page() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    quick = QuickHistogram("h", "A metric.", ("a", "b"), BUCKETS, ours)
    usual = Histogram("h", "A metric.", ("a", "b"), buckets=BUCKETS, registry=theirs)

    for labels in (("x", "y"), ("x", "z")):
        observe = quick.writer(*labels)
        for value in VALUES:
            observe(value)
            usual.labels(*labels).observe(value)
        quick.writer(*labels)(2.0)
        usual.labels(*labels).observe(2.0)

    def lines(registry: CollectorRegistry) -> list[str]:
        page = generate_latest(registry).decode().splitlines()
        return sorted(line for line in page if "_created" not in line)

    assert lines(ours) == lines(theirs)
