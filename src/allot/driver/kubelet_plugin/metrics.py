"""Metrics of a driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

PREPARE: Final = "NodePrepareResources"
UNPREPARE: Final = "NodeUnprepareResources"


class DriverMetrics:
    """Claims that are prepared, how long that took, and problems with publishing."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry = registry or CollectorRegistry()
        self._claims = Histogram(
            "allot_driver_claim_duration_seconds",
            "How long it took to prepare or unprepare one claim.",
            ("operation_name", "is_error"),
            registry=registry,
        )
        self._prepared = Gauge(
            "allot_driver_prepared_claims", "Claims that are prepared.", registry=registry
        )
        self._publish_errors = Counter(
            "allot_driver_publish_errors",
            "Problems with the published slices, by kind.",
            ("kind",),
            registry=registry,
        )

    @contextmanager
    def claim(self, operation: str) -> Iterator[None]:
        started = monotonic()
        is_error = "true"
        try:
            yield
            is_error = "false"
        finally:
            self._claims.labels(operation, is_error).observe(monotonic() - started)

    def prepared_claims(self, count: int) -> None:
        self._prepared.set(count)

    def publish_error(self, error: Exception) -> None:
        self._publish_errors.labels(type(error).__name__).inc()
