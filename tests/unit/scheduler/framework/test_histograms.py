"""A histogram of ours shows what one of the Prometheus client shows."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Histogram, generate_latest

from allot.scheduler.framework.durations import FILTER, TIDY_EVERY
from allot.scheduler.framework.histograms import MAX_UNCOUNTED, QuickHistogram
from allot.scheduler.framework.metrics import SchedulerMetrics
from allot.scheduler.framework.status import Code

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


def test_values_may_be_counted_before_it_is_read() -> None:
    registry = CollectorRegistry()
    quick = QuickHistogram("h", "A metric.", ("a",), BUCKETS, registry)

    for number in range(2 * MAX_UNCOUNTED + 3):
        quick.observe(float(number % 2), "x")
        if number == MAX_UNCOUNTED:
            quick.count_many()
    series = quick._series["x",]

    assert len(series.uncounted) == MAX_UNCOUNTED + 2
    assert registry.get_sample_value("h_count", {"a": "x"}) == 2 * MAX_UNCOUNTED + 3
    assert registry.get_sample_value("h_sum", {"a": "x"}) == MAX_UNCOUNTED + 1
    assert registry.get_sample_value("h_bucket", {"a": "x", "le": "0.001"}) == MAX_UNCOUNTED + 2
    assert not series.uncounted


def test_series_with_few_values_are_not_counted() -> None:
    quick = QuickHistogram("h", "A metric.", ("a",), BUCKETS, CollectorRegistry())
    few, many = quick.writer("few"), quick.writer("many")
    few(0.5)
    for _ in range(MAX_UNCOUNTED):
        many(0.5)

    quick.count_many()

    assert len(quick._series["few",].uncounted) == 1
    assert not quick._series["many",].uncounted


def test_cycles_have_their_values_counted() -> None:
    metrics = SchedulerMetrics()
    durations = metrics.durations_of("x")

    for _ in range(2 * MAX_UNCOUNTED):
        durations.sample()
        durations.point(FILTER, Code.SUCCESS, durations.now())
    series = metrics._point_seconds._series[FILTER, "Success", "x"]

    assert len(series.uncounted) <= TIDY_EVERY + MAX_UNCOUNTED
    assert sum(series.counts) + len(series.uncounted) == 2 * MAX_UNCOUNTED
