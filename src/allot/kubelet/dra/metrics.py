"""The kubelet's `dra_*` metrics, of all simulated nodes together."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

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
        self._in_use = _ClaimsInUse()
        registry.register(self._in_use)
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
        self._observed: dict[tuple[str, ...], Histogram] = {}
        """Histograms by their labels: to look them up takes longer than to observe."""

    def operation(self, name: str, seconds: float, *, is_error: bool) -> None:
        self._observe(self._operations.labels, (name, str(is_error).lower()), seconds)

    def call(self, driver: str, method: str, code: str, seconds: float) -> None:
        self._observe(self._calls.labels, (driver, method, code), seconds)

    def _observe(
        self, find: Callable[..., Histogram], labels: tuple[str, ...], seconds: float
    ) -> None:
        observed = self._observed.get(labels)
        if observed is None:
            observed = self._observed[labels] = find(*labels)
        observed.observe(seconds)

    def prepare_skipped(self, driver: str) -> None:
        self._prepare_skips.labels(driver).inc()

    def unprepare_skipped(self, driver: str) -> None:
        self._unprepare_skips.labels(driver).inc()

    def claim_added(self, drivers: Iterable[str]) -> None:
        self._in_use.count(drivers, 1)

    def claim_removed(self, drivers: Iterable[str]) -> None:
        self._in_use.count(drivers, -1)


class _ClaimsInUse(Collector):
    """`dra_resource_claims_in_use`; made of its numbers when it is asked for."""

    def __init__(self) -> None:
        self._claims: Tally[str] = Tally({ANY: 0})

    def count(self, drivers: Iterable[str], change: int) -> None:
        for driver in (ANY, *drivers):
            self._claims[driver] += change

    def collect(self) -> Iterator[Metric]:
        found = GaugeMetricFamily(
            "dra_resource_claims_in_use",
            "Claims that are in use on nodes, by driver; <any> counts every claim once.",
            labels=("driver_name",),
        )
        for driver, number in list(self._claims.items()):
            if number or driver == ANY:
                found.add_metric((driver,), number)
        yield found
