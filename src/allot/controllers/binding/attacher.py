"""The interface a driver implements: attaching and detaching one device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from allot.controllers.binding.attachments import Attachment, AttachRequest


class AttachFailedError(Exception):
    """The device is not ready. Retried unless `permanent`.

    After a permanent failure the claim gets another device. `condition` is the failure condition to
    set; by default the first that the device names.
    """

    def __init__(
        self, reason: str, message: str = "", *, permanent: bool = False, condition: str = ""
    ) -> None:
        super().__init__(f"{reason}: {message}" if message else reason)
        self.reason, self.message = reason, message
        self.permanent, self.condition = permanent, condition


class Attacher(ABC):
    """Attaches devices. Methods must be idempotent: they are called again when their outcome is unknown.

    Calls for one device are serialized; calls for different devices run concurrently. A call is cancelled
    when the claim no longer needs the device, or when it times out.
    """

    @abstractmethod
    async def attach(self, device: AttachRequest) -> None:
        """Return when the device is usable. Return immediately if it already is."""

    async def detach(self, device: Attachment) -> None:  # noqa: B027 - often nothing is to undo
        """Undo `attach`, whether it finished or not. Return immediately if there is nothing to undo."""

    async def attached(self) -> Iterable[Attachment]:
        """All devices that are attached, completely or partly. Called once, at start.

        Attachments without a claim are detached. Without this method, devices that were deallocated while
        no controller ran stay attached.
        """
        return ()
