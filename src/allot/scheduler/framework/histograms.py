"""Histograms that cost next to nothing to write: an extension point may take less time than a Prometheus client's lock.

Writing a value appends it to a list. It gets its bucket when the histogram is read, or when there are many.

Only the scheduler's own event loop writes them. What is read beside it may lack the last observation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

MAX_UNCOUNTED: Final = 1000
"""With so many values, a series is counted the next time that `count_many` asks."""


class _Series:
    """The values with the same labels: by bucket, and those that have none yet."""

    __slots__ = ("counts", "total", "uncounted")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.total = 0.0
        self.uncounted: list[float] = []

    def count(self, bounds: Sequence[float]) -> None:
        """Put all values into buckets."""
        values = self.uncounted.copy()
        del self.uncounted[: len(values)]  # another thread may read, so some may have come
        self.total = sum(values, self.total)
        values.sort()
        begin = 0
        for bucket, bound in enumerate(bounds):
            end = bisect_right(values, bound, begin)
            self.counts[bucket] += end - begin
            begin = end
        self.counts[-1] += len(values) - begin


class QuickHistogram(Collector):
    """A histogram whose series are written through functions."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        buckets: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        self._name, self._text, self._labels = name, text, tuple(labels)
        self._bounds = tuple(buckets)
        self._series: dict[tuple[str, ...], _Series] = {}
        self._writers: dict[tuple[str, ...], Callable[[float], None]] = {}
        self._counting = Lock()
        registry.register(self)

    def writer(self, *labels: str) -> Callable[[float], None]:
        """What observes a value in the series with these labels."""
        series = self._series.setdefault(labels, _Series(len(self._bounds) + 1))
        return series.uncounted.append

    def observe(self, value: float, *labels: str) -> None:
        """Observe a value in the series with these labels."""
        try:
            writer = self._writers[labels]
        except KeyError:
            writer = self._writers[labels] = self.writer(*labels)
        writer(value)

    def count_many(self) -> None:
        """Count series with many values. Called from time to time, so that they do not grow without limit."""
        if not self._counting.acquire(blocking=False):
            return  # another thread reads it, or did when this process was forked
        try:
            for series in self._series.values():
                if len(series.uncounted) >= MAX_UNCOUNTED:
                    series.count(self._bounds)
        finally:
            self._counting.release()

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        names = [*map(floatToGoString, self._bounds), "+Inf"]
        with self._counting:
            for labels in sorted(self._series):
                series = self._series[labels]
                series.count(self._bounds)
                buckets, seen = [], 0
                for name, count in zip(names, series.counts, strict=True):
                    seen += count
                    buckets.append((name, float(seen)))
                family.add_metric(labels, buckets, series.total)
        yield family
