"""Why a patch cannot be applied."""

from __future__ import annotations

from typing import Any, Final, Self

from allot.apiserver.managed_fields.validation import go_text

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
    def unclassified(cls, message: str) -> Self:
        """It asks for what cannot be done; Kubernetes answers without a reason."""
        return cls(422, "", message)

    @classmethod
    def wrong_directive(cls, directive: Any, change: dict[str, Any]) -> Self:
        """The value of `$patch` in a change."""
        shown = directive if isinstance(directive, str) else f"%!s({_typed(directive)})"
        return cls.unclassified(f"unknown patch type: {shown} in map: {shown_value(change)}")

    @classmethod
    def too_large(cls, message: str) -> Self:
        return cls(413, "RequestEntityTooLarge", message)


MAX_SHOWN: Final = 1_000


def shown_value(value: Any) -> str:
    """A value of a patch or of the object, as Go prints it, cut if it is long."""
    text = go_text(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


_GO_TYPES: Final = {bool: "bool", int: "int64", float: "float64"}


def _typed(value: Any) -> str:
    """As Go prints a value that is not a string where it expects one."""
    if value is None:
        return "<nil>"
    name = _GO_TYPES.get(type(value))
    return shown_value(value) if name is None else f"{name}={shown_value(value)}"
