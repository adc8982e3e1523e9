"""What you write: how a device of your driver is made ready, and let go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from allot.controllers.binding.attachments import Attachment, AttachRequest


class AttachFailedError(Exception):
    """The device is not ready. Unless that is `permanent`, it is tried again.

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
    """Makes devices ready. All methods are called again when their outcome is in doubt.

    For one device there is never more than one call at a time; for different devices there may be
    any number. A call is cancelled when it is no longer wanted or takes too long.
    """

    @abstractmethod
    async def attach(self, device: AttachRequest) -> None:
        """Return when the device can be used. If it can already, return at once."""

    async def detach(self, device: Attachment) -> None:  # noqa: B027 - often nothing is to undo
        """Undo `attach`, finished or not. Return at once if there is nothing to undo."""

    async def attached(self) -> Iterable[Attachment]:
        """What is attached now, wholly or in part. Asked once, at the start.

        What no claim has any more is detached. Without this, what was freed while no controller ran
        stays attached.
        """
        return ()
