"""What the server counts, under the names Kubernetes' dashboards know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.process_collector import ProcessCollector

from allot.exposition import Exposition

_LABELS = ("verb", "group", "version", "resource", "subresource", "scope")


class Labels(NamedTuple):
    """Which request was counted."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""


class Metrics:
    """The metrics of one server; several in one process do not mix."""

    def __init__(self) -> None:
        self._series: dict[tuple[Labels, int], tuple[Counter, Histogram]] = {}
        self.registry = CollectorRegistry()
        self.others: dict[str, Callable[[str], Awaitable[Exposition]]] = {}
        """By name: components that serve no pages themselves. They are told what the client accepts."""
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "apiserver_request",
            "Requests by what they asked for and how they were answered.",
            (*_LABELS, "code"),
            registry=self.registry,
        )
        self.durations = Histogram(
            "apiserver_request_duration_seconds",
            "How long requests took; watches are not among them.",
            _LABELS,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60),
            registry=self.registry,
        )
        self.inflight = Gauge(
            "apiserver_current_inflight_requests",
            "Requests that are being answered now, by what they do.",
            ("request_kind",),
            registry=self.registry,
        )
        self._inflight = {kind: self.inflight.labels(kind) for kind in ("readOnly", "mutating")}
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
        self.watch_bytes = Counter(
            "apiserver_watch_bytes",
            "Bytes of events sent to watchers.",
            ("group", "version", "resource"),
            registry=self.registry,
        )

    def inflight_of(self, kind: str) -> Gauge:
        """What counts the requests of this kind, readOnly or mutating, that are being answered."""
        return self._inflight[kind]

    def count(self, labels: Labels, code: int, seconds: float) -> None:
        """A request that was answered."""
        requests, durations = self._series.get((labels, code)) or self._new_series(labels, code)
        requests.inc()
        durations.observe(seconds)

    def _new_series(self, labels: Labels, code: int) -> tuple[Counter, Histogram]:
        series = self.requests.labels(*labels, str(code)), self.durations.labels(*labels)
        self._series[labels, code] = series
        return series
