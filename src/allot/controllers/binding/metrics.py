"""The metrics of a binding controller."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from allot.api.identities import DeviceId, ObjectKey
from allot.controllers.binding.attacher import AttachFailedError
from allot.controllers.binding.attachments import Attachment, AttachRequest
from allot.controllers.binding.observer import AttachOutcome, BindingObserver

_SECONDS: Final = tuple(0.1 * 2**power for power in range(14))
"""Up to 15 minutes: the scheduler's binding timeout is 10 minutes by default."""

_OUTCOME: Final = ("driver", "outcome")


class BindingMetrics(BindingObserver):
    """The metrics of the controllers in one process, by driver."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        driver = ("driver",)
        self.attempts = self._counter("attach_attempts", "Calls of attach.", driver)
        self.failures = self._counter(
            "attach_failures", "Calls of attach that failed, by reason.", ("driver", "reason")
        )
        self.attaches = self._counter(
            "attaches", "Devices that were to be made ready, by how that ended.", _OUTCOME
        )
        self.attach_seconds = self._histogram(
            "attach_duration_seconds",
            "How long making a device ready took, all attempts.",
            _OUTCOME,
        )
        self.attaching = Gauge(
            "allot_binding_attaching",
            "Devices that are being made ready.",
            driver,
            registry=self.registry,
        )
        self.detaches = self._counter("detaches", "Devices that were let go.", driver)
        self.detach_failures = self._counter(
            "detach_failures", "Calls of detach that failed.", driver
        )
        self.detach_seconds = self._histogram(
            "detach_duration_seconds", "How long letting a device go took, all attempts.", driver
        )
        self.quarantines = self._counter(
            "quarantined",
            "Broken devices that were taken out of use, or (failure) could not be.",
            ("driver", "status"),
        )
        self.writes = self._counter("claim_writes", "Writes of claims' status.", ())
        self.reports = self._counter("reports", "Devices that were reported on.", ())

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> Counter:
        return Counter(f"allot_binding_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, labels: tuple[str, ...]) -> Histogram:
        return Histogram(
            f"allot_binding_{name}", text, labels, buckets=_SECONDS, registry=self.registry
        )

    # --- events ---

    def attach_started(self, request: AttachRequest) -> None:
        self.attaching.labels(_driver(request.attachment)).inc()

    def attach_tried(self, request: AttachRequest) -> None:
        self.attempts.labels(_driver(request.attachment)).inc()

    def attach_retried(
        self, request: AttachRequest, error: AttachFailedError, wait_seconds: float
    ) -> None:
        self.attach_failed(request, error)

    def attach_failed(self, request: AttachRequest, error: AttachFailedError) -> None:
        self.failures.labels(_driver(request.attachment), error.reason).inc()

    def attach_ended(self, request: AttachRequest, outcome: AttachOutcome, seconds: float) -> None:
        driver = _driver(request.attachment)
        self.attaching.labels(driver).dec()
        self.attaches.labels(driver, outcome.value).inc()
        self.attach_seconds.labels(driver, outcome.value).observe(seconds)

    def detach_retried(self, attachment: Attachment, error: str, wait_seconds: float) -> None:
        self.detach_failures.labels(_driver(attachment)).inc()

    def detach_ended(self, attachment: Attachment, seconds: float) -> None:
        driver = _driver(attachment)
        self.detaches.labels(driver).inc()
        self.detach_seconds.labels(driver).observe(seconds)

    def quarantined(self, device: DeviceId, error: str) -> None:
        self.quarantines.labels(device.driver, "failure" if error else "success").inc()

    def claim_written(self, claim: ObjectKey, reports: int) -> None:
        self.writes.inc()
        self.reports.inc(reports)


def _driver(attachment: Attachment) -> str:
    return attachment.device.driver
