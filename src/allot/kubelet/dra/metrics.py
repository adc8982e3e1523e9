"""The kubelet's `dra_*` metrics, of all simulated nodes together."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

PREPARE: Final = "PrepareResources"
UNPREPARE: Final = "UnprepareResources"
ANY: Final = "<any>"
_BUCKETS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 25, 30, 45, 60)


class DraMetrics:
    """Calls to drivers, and claims in use."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._operations = Histogram(
            "dra_operations_duration_seconds",
            "How long it took to prepare or unprepare the claims of a pod.",
            ("operation_name", "is_error"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._calls = Histogram(
            "dra_grpc_operations_duration_seconds",
            "How long calls to drivers took.",
            ("driver_name", "method_name", "grpc_status_code"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._in_use = Gauge(
            "dra_resource_claims_in_use",
            "Claims that are in use on nodes, by driver; <any> counts every claim once.",
            ("driver_name",),
            registry=registry,
        )
        self._prepare_skips = Counter(
            "dra_node_prepare_skips",
            "Calls of NodePrepareResources that devices made unnecessary.",
            ("driver_name",),
            registry=registry,
        )
        self._unprepare_skips = Counter(
            "dra_node_unprepare_skips",
            "Calls of NodeUnprepareResources that devices made unnecessary.",
            ("driver_name",),
            registry=registry,
        )
        self._tally: Tally[str] = Tally()
        self._in_use.labels(ANY).set(0)

    def operation(self, name: str, seconds: float, *, is_error: bool) -> None:
        self._operations.labels(name, str(is_error).lower()).observe(seconds)

    def call(self, driver: str, method: str, code: str, seconds: float) -> None:
        self._calls.labels(driver, method, code).observe(seconds)

    def prepare_skipped(self, driver: str) -> None:
        self._prepare_skips.labels(driver).inc()

    def unprepare_skipped(self, driver: str) -> None:
        self._unprepare_skips.labels(driver).inc()

    def claim_added(self, drivers: Iterable[str]) -> None:
        self._count(drivers, 1)

    def claim_removed(self, drivers: Iterable[str]) -> None:
        self._count(drivers, -1)

    def _count(self, drivers: Iterable[str], change: int) -> None:
        for driver in (ANY, *drivers):
            self._tally[driver] += change
            if self._tally[driver] or driver == ANY:
                self._in_use.labels(driver).set(self._tally[driver])
            else:
                del self._tally[driver]
                self._in_use.remove(driver)
