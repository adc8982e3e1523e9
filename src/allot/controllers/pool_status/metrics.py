"""Metrics of processed requests, under the names of KEP-5677 and of Kubernetes v1.38.

The KEP's duration is the one of its objective (99 % within 30 seconds): from the creation of a request to its status.
That of v1.38 begins when the controller starts processing, and has a label for the driver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

OBJECTIVE_SECONDS: Final = 30.0
_SECONDS: Final = tuple(0.001 * 2**power for power in range(15))
_WAITED_SECONDS: Final = (*_SECONDS, OBJECTIVE_SECONDS, 60.0, 300.0, 3600.0)
_KEP: Final = "resourcepoolstatus_"
_KUBERNETES: Final = "resourcepoolstatusrequest_controller_"
MAX_DRIVERS: Final = 100
OTHER_DRIVERS: Final = "other"
"""The label of drivers without slices, whose names are arbitrary user input, and of those beyond the first hundred."""


class PoolStatusMetrics:
    """Each event is counted twice: for all drivers, and by driver."""

    def __init__(self, registry: CollectorRegistry, is_known: Callable[[str], bool]) -> None:
        """`is_known` says whether a driver has slices."""
        self._is_known = is_known
        self._drivers: set[str] = set()
        processed = "Requests that were answered."
        errors = "Answers that could not be worked out or written."
        by = ("driver_name",)
        name = "requests_processed"
        self._processed = Counter(_KEP + name, processed, registry=registry)
        self._processed_by_driver = Counter(_KUBERNETES + name, processed, by, registry=registry)
        name = "request_processing_errors"
        self._errors = Counter(_KEP + name, errors, registry=registry)
        self._errors_by_driver = Counter(_KUBERNETES + name, errors, by, registry=registry)
        name = "request_processing_duration_seconds"
        self._waited = Histogram(
            _KEP + name,
            "From the creation of a request to its answer.",
            buckets=_WAITED_SECONDS,
            registry=registry,
        )
        self._worked_by_driver = Histogram(
            _KUBERNETES + name,
            "How long it took to answer a request, without waiting.",
            by,
            buckets=_SECONDS,
            registry=registry,
        )

    def answered(self, driver: str, worked_seconds: float, waited_seconds: float) -> None:
        """`waited_seconds` includes `worked_seconds`."""
        label = self._label(driver)
        self._processed.inc()
        self._processed_by_driver.labels(label).inc()
        self._waited.observe(waited_seconds)
        self._worked_by_driver.labels(label).observe(worked_seconds)

    def went_wrong(self, driver: str) -> None:
        self._errors.inc()
        self._errors_by_driver.labels(self._label(driver)).inc()

    def _label(self, driver: str) -> str:
        if driver not in self._drivers:
            if len(self._drivers) >= MAX_DRIVERS or not self._is_known(driver):
                return OTHER_DRIVERS
            self._drivers.add(driver)
        return driver
