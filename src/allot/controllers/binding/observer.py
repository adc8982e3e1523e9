"""What happens in a binding controller, for metrics and for people who watch it."""

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
    """This one does not care. Methods are called in the event loop and should return at once."""

    def attach_started(self, request: AttachRequest) -> None:
        """A device is to be made ready."""

    def attach_tried(self, request: AttachRequest) -> None:
        """An attempt begins."""

    def attach_retried(
        self, request: AttachRequest, error: AttachFailedError, wait_seconds: float
    ) -> None:
        """An attempt failed; another follows."""

    def attach_failed(self, request: AttachRequest, error: AttachFailedError) -> None:
        """The last attempt failed; none follows."""

    def attach_ended(self, request: AttachRequest, outcome: AttachOutcome, seconds: float) -> None:
        """All attempts together took so long."""

    def detach_retried(self, attachment: Attachment, error: str, wait_seconds: float) -> None:
        """An attempt to let go failed; another follows."""

    def detach_ended(self, attachment: Attachment, seconds: float) -> None:
        """The device is free."""

    def quarantined(self, device: DeviceId, error: str) -> None:
        """A broken device was taken out of use, or could not be: then `error` says why."""

    def claim_written(self, claim: ObjectKey, reports: int) -> None:
        """So many devices were reported on in one write."""
