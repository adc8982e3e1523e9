"""Callbacks for the events of a binding controller, for metrics and for users."""

from __future__ import annotations

from enum import Enum

from allot.api.identities import DeviceId, ObjectKey
from allot.controllers.binding.attacher import AttachFailedError
from allot.controllers.binding.attachments import Attachment, AttachRequest


class AttachOutcome(Enum):
    """How an attach ended."""

    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"


class BindingObserver:
    """Ignores all events; override what you need. Methods run in the event loop and must not block."""

    def attach_started(self, request: AttachRequest) -> None:
        """Attaching a device starts."""

    def attach_tried(self, request: AttachRequest) -> None:
        """An attempt starts."""

    def attach_retried(
        self, request: AttachRequest, error: AttachFailedError, wait_seconds: float
    ) -> None:
        """An attempt failed and is retried."""

    def attach_failed(self, request: AttachRequest, error: AttachFailedError) -> None:
        """The attach failed permanently."""

    def attach_ended(self, request: AttachRequest, outcome: AttachOutcome, seconds: float) -> None:
        """The attach ended; `seconds` is the duration of all attempts."""

    def detach_retried(self, attachment: Attachment, error: str, wait_seconds: float) -> None:
        """A detach failed and is retried."""

    def detach_ended(self, attachment: Attachment, seconds: float) -> None:
        """The device is detached."""

    def quarantined(self, device: DeviceId, error: str) -> None:
        """A failed device was quarantined; `error` is not empty if that failed."""

    def claim_written(self, claim: ObjectKey, reports: int) -> None:
        """A claim's status was written; `reports` is the number of devices."""
