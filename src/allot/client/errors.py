"""Errors of requests: of the transport, and of the API server."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from allot.api.decoding import DecodeError
from allot.api.protobuf.envelope import MAGIC, decode_document


class ClientError(Exception):
    """A request failed."""


class ConfigError(ClientError):
    """The kubeconfig, or what it refers to, cannot be used."""


class TransportError(ClientError):
    """No response. `was_sent`: whether the server may have processed the request."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class UnreadableAnswerError(ClientError):
    """The response is not a valid document of the expected kind."""


class ContentionError(ClientError):
    """Too many conflicts in a row. Retry later."""


class ApiStatusError(ClientError):
    """The server responded with an error. Has the fields of its Status."""

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
        """The error of a response, whose body may be a Status, plain text from a proxy, or empty."""
        try:
            status = decode_document(body) if body.startswith(MAGIC) else msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, DecodeError):
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
        status_code = status.get("code")
        return cls(
            status_code if isinstance(status_code, int) and status_code else code or 500,
            str(status.get("reason") or ""),
            str(status.get("message") or ""),
            details,
            retry_after_seconds,
        )

    @property
    def causes(self) -> list[dict[str, Any]]:
        """The causes, such as invalid fields."""
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
        """The object was modified, or a precondition does not hold. Read it again."""
        return self.code == 409 and self.reason != "AlreadyExists"

    @property
    def is_expired(self) -> bool:
        """The requested resourceVersion has expired. List again."""
        return self.code == 410

    @property
    def is_version_too_large(self) -> bool:
        """The requested resourceVersion is newer than the server's."""
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
        """A disruption budget does not allow the eviction now."""
        return self.code == 429 and self.has_cause("DisruptionBudget")


def log_failure(
    log: logging.Logger, error: BaseException, message: str, *arguments: object
) -> None:
    """Errors of the server are logged in one line, other exceptions with their traceback."""
    if is_of_the_server(error):
        log.warning("%s: %s", message % arguments, _first(error))
    else:
        log.error(message, *arguments, exc_info=error)


def is_of_the_server(error: BaseException) -> bool:
    """Whether the exception, or all of a group, are client errors."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_of_the_server, error.exceptions))
    return isinstance(error, ClientError) or isinstance(error.__cause__, ClientError)


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
