"""Counters that cost next to nothing to write, as the histograms of `histograms`: without a lock for each count.

Only the scheduler's own event loop writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector


class QuickCounter(Collector):
    """A counter with labels."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry
    ) -> None:
        self._name, self._text, self._labels = name, text, tuple(labels)
        self._values: dict[tuple[str, ...], int] = {}
        registry.register(self)

    def inc(self, *labels: str) -> None:
        """Count one in the series with these labels."""
        self._values[labels] = self._values.get(labels, 0) + 1

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for labels, value in sorted(self._values.copy().items()):
            family.add_metric(labels, value)
        yield family
