"""What the server answers when it cannot do what was asked: one exception, many reasons.

Each function words one reason as Kubernetes clients know it. `responses` writes it as a Status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from allot.apiserver.kinds.resources import Resource
from allot.validation.fields import MAX_ERRORS, FieldError, FieldPath
from allot.validation.fields import invalid as invalid_field

MAX_ERROR_TEXT: Final = 256 * 1024
"""The length of all errors of one answer together. The first is always included."""
MAX_SHOWN: Final = 16 * 1024
"""How much of a single value is shown."""


class Cause(NamedTuple):
    """One of several things that are wrong."""

    reason: str
    message: str
    field: str = ""


class Details(NamedTuple):
    """Which object the problem is about, and every single cause."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class ApiError(Exception):
    """The request cannot be fulfilled; the client reads why in a Status."""

    def __init__(
        self, code: int, reason: str, message: str, details: Details | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details
        self.warnings: list[str] = []
        """Warnings that come with the answer nevertheless."""

    def status(self) -> dict[str, Any]:
        """The body of the answer."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = _shown(self.details)
        status["code"] = self.code
        return status


def _shown(details: Details) -> dict[str, Any]:
    named = ("name", details.name), ("group", details.group), ("kind", details.kind)
    shown: dict[str, Any] = {name: value for name, value in (*named, ("uid", details.uid)) if value}
    if details.causes:
        shown["causes"] = [
            {name: value for name, value in cause._asdict().items() if value}
            for cause in details.causes
        ]
    if details.retry_after_seconds:
        shown["retryAfterSeconds"] = details.retry_after_seconds
    return shown


def about(resource: Resource, name: str = "", causes: Sequence[Cause] = ()) -> Details:
    return Details(name, resource.group, resource.plural, causes=tuple(causes))


# --- 400 ---


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def cannot_be_read(kind: str, version: str, message: str) -> ApiError:
    """The body is not an object of this kind."""
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {message}')


def strict_decoding(kind: str, version: str, issues: Iterable[object]) -> ApiError:
    listed = ", ".join(str(issue) for issue in issues)
    return cannot_be_read(kind, version, f"strict decoding error: {listed}")


# --- 401, 403 ---


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(
    resource: Resource, name: str, message: str, causes: Sequence[Cause] = ()
) -> ApiError:
    named = f'{resource.qualified_name} "{name}"' if name else resource.qualified_name
    return ApiError(
        403, "Forbidden", f"{named} is forbidden: {message}", about(resource, name, causes)
    )


def namespace_is_terminating(resource: Resource, name: str, namespace: str) -> ApiError:
    cause = Cause(
        "NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace"
    )
    return forbidden(
        resource,
        name,
        f"unable to create new content in namespace {namespace} because it is being terminated",
        [cause],
    )


# --- 404, 405, 406 ---


def not_found(resource: Resource, name: str) -> ApiError:
    return ApiError(
        404, "NotFound", f'{resource.qualified_name} "{name}" not found', about(resource, name)
    )


class MissingObjectError(ApiError):
    """404: the object of the request itself does not exist. Admission may answer 404 for other reasons."""

    def __init__(self, resource: Resource, name: str) -> None:
        error = not_found(resource, name)
        super().__init__(error.code, error.reason, error.message, error.details)


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", Details())


def method_not_allowed() -> ApiError:
    return ApiError(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        Details(),
    )


def not_supported(resource: Resource, verb: str) -> ApiError:
    """A resource, or a part of it, that does not have a verb."""
    return ApiError(
        405,
        "MethodNotAllowed",
        f'{verb} is not supported on resources of kind "{resource.qualified_name}"',
        about(resource),
    )


# --- 409 ---


def already_exists(resource: Resource, name: str) -> ApiError:
    return ApiError(
        409,
        "AlreadyExists",
        f'{resource.qualified_name} "{name}" already exists',
        about(resource, name),
    )


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def conflict(resource: Resource, name: str, why: str, causes: Sequence[Cause] = ()) -> ApiError:
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {resource.qualified_name} "{name}": {why}',
        about(resource, name, causes),
    )


# --- 410, 504 ---


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def too_old(asked: int, oldest: int) -> ApiError:
    return expired(f"too old resource version: {asked} ({oldest})")


def too_large(asked: int, current: int) -> ApiError:
    message = f"Too large resource version: {asked}, current: {current}"
    cause = Cause("ResourceVersionTooLarge", "Too large resource version")
    return ApiError(504, "Timeout", message, Details(causes=(cause,), retry_after_seconds=1))


# --- 408, 413, 422, 429, 5xx ---


def request_timeout(message: str) -> ApiError:
    return ApiError(408, "Timeout", message, Details())


def too_many_requests(message: str, retry_after_seconds: int = 1) -> ApiError:
    details = Details(retry_after_seconds=retry_after_seconds)
    return ApiError(429, "TooManyRequests", message, details)


def body_too_large(limit: int) -> ApiError:
    return ApiError(
        413,
        "RequestEntityTooLarge",
        f"Request entity too large: limit is {limit}",
        Details(),
    )


def object_too_large(size: int, limit: int) -> ApiError:
    """The object has become larger than its request."""
    return ApiError(
        413,
        "RequestEntityTooLarge",
        f"Request entity too large: the object would have {size} bytes, limit is {limit}",
        Details(),
    )


def too_many_values(limit: int) -> ApiError:
    return ApiError(
        413,
        "RequestEntityTooLarge",
        f"Request entity too large: a document may have at most {limit} values",
        Details(),
    )


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """All that is wrong with an object, in one answer. What is said twice is listed once."""
    causes: list[Cause] = []
    messages: dict[str, None] = {}
    size, is_cut = 0, False
    for error in errors:
        message, path = _cut(error.message), _cut(str(error.path))
        text = f"{path}: {message}"
        if text in messages:
            continue
        size += len(message) + len(path)
        if causes and size > MAX_ERROR_TEXT:
            is_cut = True
            break
        causes.append(Cause(error.type.reason, message, path))
        messages[text] = None
    if is_cut or len(errors) == MAX_ERRORS:
        messages["there may be more errors, which are not shown"] = None
    listed = next(iter(messages)) if len(messages) == 1 else f"[{', '.join(messages)}]"
    qualified = f"{kind}.{group}" if group else kind
    return ApiError(
        422,
        "Invalid",
        f'{qualified} "{name}" is invalid: {listed}',
        Details(name, group, kind, causes=tuple(causes)),
    )


def _cut(text: str) -> str:
    """Errors show what is wrong, which may be large."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def bad_patch(patched: bytes, problem: str) -> ApiError:
    """A patch makes something of an object that is none."""
    text = _cut(patched[: MAX_SHOWN + 1].decode(errors="replace"))
    return invalid("", "", "", [invalid_field(FieldPath("patch"), text, problem)])


def internal(message: str) -> ApiError:
    return ApiError(
        500,
        "InternalError",
        f"Internal error occurred: {message}",
        Details(causes=(Cause("", message),)),
    )


UNPROCESSABLE: Final = 422


def unclassified(message: str) -> ApiError:
    """A mistake of the client that Kubernetes answers as one of its own: with 500, and without a reason.

    Clients show the same text for both.
    """
    return ApiError(UNPROCESSABLE, "", message)


def as_server_error(error: ApiError) -> ApiError:
    """An unclassified mistake with the code that Kubernetes gives it; other errors as they are."""
    if error.code == UNPROCESSABLE and not error.reason:
        error.code = 500
    return error


def unavailable(message: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", message, Details(retry_after_seconds=1))
