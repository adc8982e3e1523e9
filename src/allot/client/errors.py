"""What can go wrong on the way to the server, and what the server may say no with."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec


class ClientError(Exception):
    """Something did not work."""


class ConfigError(ClientError):
    """The kubeconfig, or what it refers to, cannot be used."""


class TransportError(ClientError):
    """There is no answer. `was_sent` tells whether the server may have done it nevertheless."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class UnreadableAnswerError(ClientError):
    """The server answered with something that is not what was asked for."""


class ContentionError(ClientError):
    """An object changes faster than it can be written. It is tried again later."""


class ApiStatusError(ClientError):
    """The server said no. Carries the parts of its Status."""

    def __init__(
        self,
        code: int,
        reason: str = "",
        message: str = "",
        details: Mapping[str, Any] | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message or f"the server answered with {code} {reason}".rstrip())
        self.code, self.reason, self.details = code, reason, details or {}
        self.message = str(self)
        self.retry_after_seconds = retry_after_seconds

    @classmethod
    def from_body(
        cls, code: int, body: bytes, retry_after_seconds: float | None = None
    ) -> ApiStatusError:
        """The error in an answer, which may be a Status, a text of some proxy, or nothing."""
        try:
            status = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return cls(code, "", body.decode("utf-8", "replace").strip(), None, retry_after_seconds)
        return cls.from_status(status, code, retry_after_seconds)

    @classmethod
    def from_status(
        cls, status: Any, code: int = 0, retry_after_seconds: float | None = None
    ) -> ApiStatusError:
        if not isinstance(status, dict):
            return cls(code or 500, retry_after_seconds=retry_after_seconds)
        details = status.get("details")
        details = details if isinstance(details, dict) else {}
        if retry_after_seconds is None:
            seconds = details.get("retryAfterSeconds")
            retry_after_seconds = float(seconds) if isinstance(seconds, int) and seconds else None
        said = status.get("code")
        return cls(
            said if isinstance(said, int) and said else code or 500,
            str(status.get("reason") or ""),
            str(status.get("message") or ""),
            details,
            retry_after_seconds,
        )

    @property
    def causes(self) -> list[dict[str, Any]]:
        """The single faults, such as fields that are wrong."""
        causes = self.details.get("causes")
        return [cause for cause in causes or () if isinstance(cause, dict)]

    def has_cause(self, reason: str) -> bool:
        return any(cause.get("reason") == reason for cause in self.causes)

    @property
    def is_not_found(self) -> bool:
        return self.code == 404

    @property
    def is_already_exists(self) -> bool:
        return self.code == 409 and self.reason == "AlreadyExists"

    @property
    def is_conflict(self) -> bool:
        """Somebody else changed it first, or a precondition does not hold. Read it again."""
        return self.code == 409 and self.reason != "AlreadyExists"

    @property
    def is_expired(self) -> bool:
        """The version that was asked for is no longer kept. List again."""
        return self.code == 410

    @property
    def is_version_too_large(self) -> bool:
        """The version that was asked for is one the server has not seen."""
        return self.code == 504 and self.has_cause("ResourceVersionTooLarge")

    @property
    def is_forbidden(self) -> bool:
        return self.code == 403

    @property
    def is_unauthorized(self) -> bool:
        return self.code == 401

    @property
    def is_invalid(self) -> bool:
        return self.code == 422

    @property
    def is_server_error(self) -> bool:
        return self.code >= 500

    @property
    def is_namespace_terminating(self) -> bool:
        return self.code == 403 and self.has_cause("NamespaceTerminating")

    @property
    def is_disrupting(self) -> bool:
        """An eviction that a disruption budget does not allow now."""
        return self.code == 429 and self.has_cause("DisruptionBudget")


def log_failure(
    log: logging.Logger, error: BaseException, message: str, *arguments: object
) -> None:
    """Trouble with the server is to be expected, and one line; of our own mistakes the traceback is shown."""
    if is_of_the_server(error):
        log.warning("%s: %s", message % arguments, _first(error))
    else:
        log.error(message, *arguments, exc_info=error)


def is_of_the_server(error: BaseException) -> bool:
    """Whether the server, or the way to it, is to blame for all of it."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_of_the_server, error.exceptions))
    return isinstance(error, ClientError) or isinstance(error.__cause__, ClientError)


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
