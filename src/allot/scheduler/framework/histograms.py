"""Histograms that cost next to nothing to write: an extension point may take less time than a Prometheus client's lock.

Only the scheduler's own event loop writes them. What is read beside it may lack the last observation.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


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
        self._series: dict[tuple[str, ...], tuple[list[int], list[float]]] = {}
        self._writers: dict[tuple[str, ...], Callable[[float], None]] = {}
        registry.register(self)

    def writer(self, *labels: str) -> Callable[[float], None]:
        """What observes a value in the series with these labels."""
        bounds = self._bounds
        counts, total = self._series.setdefault(labels, ([0] * (len(bounds) + 1), [0.0]))

        def observe(value: float) -> None:
            counts[bisect_left(bounds, value)] += 1
            total[0] += value

        return observe

    def observe(self, value: float, *labels: str) -> None:
        """Observe a value in the series with these labels."""
        try:
            writer = self._writers[labels]
        except KeyError:
            writer = self._writers[labels] = self.writer(*labels)
        writer(value)

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        names = [*map(floatToGoString, self._bounds), "+Inf"]
        for labels, (counts, total) in sorted(self._series.items()):
            buckets, seen = [], 0
            for name, count in zip(names, tuple(counts), strict=True):
                seen += count
                buckets.append((name, float(seen)))
            family.add_metric(labels, buckets, total[0])
        yield family
