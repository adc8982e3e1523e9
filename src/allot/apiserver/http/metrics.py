"""What the server counts, under the names Kubernetes' dashboards know."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from itertools import accumulate
from time import time
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from allot.exposition import Exposition

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)
WATCHED: Final = -1
"""In place of a bucket, for watches."""
_LABELS: Final = ("verb", "group", "version", "resource", "subresource", "scope")


class Labels(NamedTuple):
    """Which request was counted."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""


class _Series:
    """The requests that have the same labels."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts: defaultdict[tuple[int, int], int] = defaultdict(int)
        """By status code and bucket of the duration."""
        self.seconds = 0.0

    def totals(self) -> tuple[dict[int, int], list[int]]:
        """How many requests were answered with each code, and how many were in each bucket."""
        by_code: defaultdict[int, int] = defaultdict(int)
        in_bucket = [0] * (len(BUCKETS) + 1)
        for (code, bucket), number in list(self.counts.items()):
            by_code[code] += number
            if bucket != WATCHED:
                in_bucket[bucket] += number
        return by_code, in_bucket


class RequestCollector(Collector):
    """Counts requests, on the event loop only: every request pays for it, so it takes no locks.

    A thread collects meanwhile, from copies.
    """

    def __init__(self) -> None:
        self._series: defaultdict[Labels, _Series] = defaultdict(_Series)

    def count(self, labels: Labels, code: int, seconds: float) -> None:
        """A request that was answered after so many seconds."""
        series = self._series[labels]
        series.counts[code, bisect_left(BUCKETS, seconds)] += 1
        series.seconds += seconds

    def count_watch(self, labels: Labels) -> None:
        """A watch that has begun; how long it takes says nothing."""
        self._series[labels].counts[200, WATCHED] += 1

    def describe(self) -> Iterable[Metric]:
        return self._families()

    def collect(self) -> Iterable[Metric]:
        requests, durations = self._families()
        for labels, series in list(self._series.items()):
            by_code, in_bucket = series.totals()
            for code, number in by_code.items():
                requests.add_metric([*labels, str(code)], number)
            totals = list(accumulate(in_bucket))
            if totals[-1]:
                bounds = [*map(floatToGoString, BUCKETS), "+Inf"]
                durations.add_metric(labels, list(zip(bounds, totals, strict=True)), series.seconds)
        return requests, durations

    def _families(self) -> tuple[CounterMetricFamily, HistogramMetricFamily]:
        return CounterMetricFamily(
            "apiserver_request",
            "Requests by what they asked for and how they were answered.",
            labels=(*_LABELS, "code"),
        ), HistogramMetricFamily(
            "apiserver_request_duration_seconds",
            "How long requests took; watches are not among them.",
            labels=_LABELS,
        )


class SentBytes:
    """What the watches of one resource have sent."""

    __slots__ = ("created", "size")

    def __init__(self) -> None:
        self.created = time()
        self.size = 0

    def add(self, size: int) -> None:
        self.size += size


class SentBytesCollector(Collector):
    """Counts what watches send, on the event loop only: every event pays for it."""

    def __init__(self) -> None:
        self._sent: dict[tuple[str, str, str], SentBytes] = {}

    def of(self, labels: Labels) -> SentBytes:
        key = (labels.group, labels.version, labels.resource)
        return self._sent.setdefault(key, SentBytes())

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(
            "apiserver_watch_bytes",
            "Bytes of events sent to watchers.",
            labels=("group", "version", "resource"),
        )
        for labels, sent in list(self._sent.items()):
            family.add_metric(labels, sent.size, created=sent.created)
        return (family,)


class Metrics:
    """The metrics of one server; several in one process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.others: dict[str, Callable[[str], Awaitable[Exposition]]] = {}
        """By name: components without a metrics endpoint of their own. They are told what the client accepts."""
        ProcessCollector(registry=self.registry)
        self.requests = RequestCollector()
        self.registry.register(self.requests)
        self.inflight = Gauge(
            "apiserver_current_inflight_requests",
            "Requests that are being answered now, by what they do.",
            ("request_kind",),
            registry=self.registry,
        )
        self.waiting = Gauge(
            "apiserver_flowcontrol_current_inqueue_requests",
            "Requests that wait for a seat.",
            ("priority_level", "request_kind"),
            registry=self.registry,
        )
        self.rejected = Counter(
            "apiserver_flowcontrol_rejected_requests",
            "Requests that were answered with 429, by why.",
            ("priority_level", "request_kind", "reason"),
            registry=self.registry,
        )
        self.body_bytes = Gauge(
            "allot_apiserver_request_body_bytes",
            "Memory set aside for bodies of requests that are being read or answered.",
            ("priority_level",),
            registry=self.registry,
        )
        self.connections = Gauge(
            "allot_apiserver_connections",
            "Connections that are open now, by what they do: head, idle, busy or closing.",
            ("state",),
            registry=self.registry,
        )
        self.connections_ended = Counter(
            "allot_apiserver_connections_ended",
            "Connections that the server ended or refused, by why.",
            ("reason",),
            registry=self.registry,
        )
        self.watchers = Gauge(
            "apiserver_longrunning_requests",
            "Watches that are open now.",
            _LABELS,
            registry=self.registry,
        )
        self.watch_bytes = SentBytesCollector()
        self.registry.register(self.watch_bytes)
