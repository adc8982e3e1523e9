"""The scale of custom resources: its numbers are where the definition says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from allot.api.raw import RawObject
from allot.apiserver.kinds.custom_versions import ScalePaths
from allot.apiserver.managed_fields.validation import go_text
from allot.validation.fields import FieldError, FieldPath, invalid

_MAX = 2**31 - 1


def validate_replicas(
    obj: RawObject, paths: ScalePaths | None, *, only_status: bool = False
) -> Iterator[FieldError]:
    """The numbers of the scale endpoint."""
    if paths is None:
        return
    if not only_status:
        yield from _validate_count(obj, paths.spec_replicas)
    yield from _validate_count(obj, paths.status_replicas)
    if paths.selector:
        value: Any = obj.get(*paths.selector)
        if value is not None and not isinstance(value, str):
            path = _shown(paths.selector)
            yield invalid(
                FieldPath(path), value, f"{path} accessor error: {_wrong(value, 'string')}"
            )


def _validate_count(obj: RawObject, parts: tuple[str, ...]) -> Iterator[FieldError]:
    value: Any = obj.get(*parts)
    if value is None:
        return
    path = _shown(parts)
    if not isinstance(value, int) or isinstance(value, bool):
        yield invalid(FieldPath(path), 0, f"{path} accessor error: {_wrong(value, 'int64')}")
    elif value < 0:
        yield invalid(FieldPath(path), value, "should be a non-negative integer")
    elif value > _MAX:
        yield invalid(FieldPath(path), value, f"should be less than or equal to {_MAX}")


def _shown(parts: tuple[str, ...]) -> str:
    return "." + ".".join(parts)


def _wrong(value: Any, wanted: str) -> str:
    return f"{go_text(value)} is of the type {_go_type(value)}, expected {wanted}"


def _go_type(value: Any) -> str:
    match value:
        case str():
            return "string"
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case dict():
            return "map[string]interface {}"
    return "[]interface {}"
