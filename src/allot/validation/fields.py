"""Field paths and field errors, as values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from enum import Enum
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.decoding import to_builtin


class FieldPath(msgspec.Struct, eq=False, gc=False):
    """Where in an object: `FieldPath("spec") / "devices" @ 0` is `spec.devices[0]`.

    Validation makes dozens for every object, most of which are never shown.
    """

    _part: str
    _parent: FieldPath | None = None

    def __truediv__(self, name: str) -> FieldPath:
        return FieldPath("." + name, self)

    def __matmul__(self, key: int | str) -> FieldPath:
        """An item of a list, or a value of a map."""
        return FieldPath(f"[{key}]", self)

    def __str__(self) -> str:
        parts = []
        path: FieldPath | None = self
        while path is not None:
            parts.append(path._part)
            path = path._parent
        return "".join(reversed(parts))

    def __repr__(self) -> str:
        return f"FieldPath({str(self)!r})"


class ErrorType(Enum):
    """The type as vectors name it, the reason of a status cause, and the start of the message."""

    REQUIRED = ("Required", "FieldValueRequired", "Required value")
    INVALID = ("Invalid", "FieldValueInvalid", "Invalid value")
    DUPLICATE = ("Duplicate", "FieldValueDuplicate", "Duplicate value")
    NOT_SUPPORTED = ("NotSupported", "FieldValueNotSupported", "Unsupported value")
    FORBIDDEN = ("Forbidden", "FieldValueForbidden", "Forbidden")
    TOO_LONG = ("TooLong", "FieldValueTooLong", "Too long")
    TOO_MANY = ("TooMany", "FieldValueTooMany", "Too many")
    NOT_FOUND = ("NotFound", "FieldValueNotFound", "Not found")
    TYPE_INVALID = ("TypeInvalid", "FieldValueTypeInvalid", "Invalid value")
    INTERNAL = ("InternalError", "InternalError", "Internal error")

    @property
    def type_name(self) -> str:
        return self.value[0]

    @property
    def reason(self) -> str:
        return self.value[1]

    @property
    def words(self) -> str:
        return self.value[2]


WITHOUT_VALUE: Final = frozenset(
    {ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG, ErrorType.INTERNAL}
)
"""Errors that do not show the value they are about."""


OMITTED: Final = object()
"""The value of an error that does not show it, because it is large."""


class FieldError(NamedTuple):
    """One error. `declared`: found by a rule declared on the request's version."""

    type: ErrorType
    path: FieldPath
    value: Any
    detail: str
    declared: bool = False

    @property
    def message(self) -> str:
        """`Invalid value: "x": must be ...`, as clients show it behind the field."""
        parts = [self.type.words]
        if self.type not in WITHOUT_VALUE and self.value is not OMITTED:
            parts.append(show_value(self.value))
        if self.detail:
            parts.append(self.detail)
        return ": ".join(parts)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


MAX_ERRORS: Final = 500
"""Further errors are left out; errors of one kind often repeat."""


def first_errors(errors: Iterable[FieldError]) -> list[FieldError]:
    """The first errors, up to `MAX_ERRORS`."""
    return list(islice(errors, MAX_ERRORS))


def show_value(value: Any) -> str:
    """A value in an error message: strings quoted, the rest as compact JSON."""
    if isinstance(value, str):
        return _control_character.sub(_go_escape, json.dumps(value, ensure_ascii=False))
    if value is None:
        return "null"
    return msgspec.json.encode(value, enc_hook=to_builtin).decode()


_control_character: Final = re.compile(r"\\u00([01][0-9a-f])|\x7f")
_GO_ESCAPES: Final = {"07": r"\a", "0b": r"\v"}


def _go_escape(found: re.Match[str]) -> str:
    """A control character as Go quotes it."""
    code = found[1] or "7f"
    return _GO_ESCAPES.get(code, rf"\x{code}")


def required(path: FieldPath, detail: str = "", *, declared: bool = False) -> FieldError:
    return FieldError(ErrorType.REQUIRED, path, None, detail, declared)


def invalid(path: FieldPath, value: Any, detail: str, *, declared: bool = False) -> FieldError:
    return FieldError(ErrorType.INVALID, path, value, detail, declared)


def duplicate(path: FieldPath, value: Any, *, declared: bool = False) -> FieldError:
    return FieldError(ErrorType.DUPLICATE, path, value, "", declared)


def forbidden(path: FieldPath, detail: str, *, declared: bool = False) -> FieldError:
    return FieldError(ErrorType.FORBIDDEN, path, None, detail, declared)


def internal(path: FieldPath, detail: str) -> FieldError:
    return FieldError(ErrorType.INTERNAL, path, None, detail)


def not_found(path: FieldPath, value: Any, detail: str = "") -> FieldError:
    return FieldError(ErrorType.NOT_FOUND, path, value, detail)


def not_supported(
    path: FieldPath,
    value: Any,
    allowed: Iterable[str],
    *,
    declared: bool = False,
    is_ordered: bool = False,
) -> FieldError:
    """`is_ordered`: the values are listed in the order given."""
    listed = allowed if is_ordered else sorted(allowed)
    detail = "supported values: " + ", ".join(f'"{name}"' for name in listed)
    return FieldError(ErrorType.NOT_SUPPORTED, path, value, detail, declared)


def too_long(
    path: FieldPath, limit: int, unit: str = "bytes", *, declared: bool = False
) -> FieldError:
    return FieldError(
        ErrorType.TOO_LONG, path, None, f"may not be more than {limit} {unit}", declared
    )


def too_many(path: FieldPath, count: int, limit: int, *, declared: bool = False) -> FieldError:
    return FieldError(ErrorType.TOO_MANY, path, count, f"must have at most {limit} items", declared)
