"""Why a patch cannot be applied."""

from __future__ import annotations

from typing import Final, Self

REJECTED: Final = "the server rejected our request due to an error in our request"


class PatchError(Exception):
    """The patch is not one, or it does not fit the object. Carries what the Status will say."""

    def __init__(self, code: int, reason: str, message: str, short_message: str = "") -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message
        self.short_message = short_message or message
        """Without the details that Kubernetes leaves out."""

    @classmethod
    def malformed(cls, message: str) -> Self:
        """It cannot be read as a patch of its kind."""
        return cls(400, "BadRequest", message)

    @classmethod
    def unfit(cls, problem: str) -> Self:
        """It is a patch, but not for this object."""
        return cls(422, "Invalid", f"{REJECTED}: {problem}", REJECTED)

    @classmethod
    def too_large(cls, message: str) -> Self:
        return cls(413, "RequestEntityTooLarge", message)
