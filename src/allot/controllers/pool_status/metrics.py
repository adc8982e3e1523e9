"""What is known about answered requests, under the names of KEP-5677 and under those of Kubernetes v1.38."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

_SECONDS: Final = tuple(0.001 * 2**power for power in range(15))
_KEP: Final = "resourcepoolstatus_"
_KUBERNETES: Final = "resourcepoolstatusrequest_controller_"


class PoolStatusMetrics:
    """Each fact is counted twice: once for all drivers, once by driver."""

    def __init__(self, registry: CollectorRegistry) -> None:
        processed = "Requests that were answered."
        errors = "Answers that could not be worked out or written."
        seconds = "How long it took to answer a request."
        by = ("driver_name",)
        name = "requests_processed"
        self._processed = Counter(_KEP + name, processed, registry=registry)
        self._processed_by_driver = Counter(_KUBERNETES + name, processed, by, registry=registry)
        name = "request_processing_errors"
        self._errors = Counter(_KEP + name, errors, registry=registry)
        self._errors_by_driver = Counter(_KUBERNETES + name, errors, by, registry=registry)
        name = "request_processing_duration_seconds"
        self._seconds = Histogram(_KEP + name, seconds, buckets=_SECONDS, registry=registry)
        self._seconds_by_driver = Histogram(
            _KUBERNETES + name, seconds, by, buckets=_SECONDS, registry=registry
        )

    def answered(self, driver: str, seconds: float) -> None:
        self._processed.inc()
        self._processed_by_driver.labels(driver).inc()
        self._seconds.observe(seconds)
        self._seconds_by_driver.labels(driver).observe(seconds)

    def went_wrong(self, driver: str) -> None:
        self._errors.inc()
        self._errors_by_driver.labels(driver).inc()
