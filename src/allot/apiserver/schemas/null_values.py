"""Nulls in documents of raw kinds: a field that is null is not there; in a list or map null is the empty value, as in Go.

Go clients write null for what is not set, such as a creationTimestamp.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from allot.api.identities import GroupVersionKind
from allot.apiserver.schemas.fields import FREE_FORM, Field, Type
from allot.apiserver.schemas.types import type_named, type_of

_STRUCTURED: Final = ("metadata", "spec", "status")
_EMPTY: Final = {"string": "", "bytes": "", "integer": 0, "boolean": False}


def without_nulls(data: Mapping[str, Any], gvk: GroupVersionKind) -> dict[str, Any]:
    """The object without nulls, but for those in free-form values outside metadata, spec and status."""
    schema = type_of(gvk)
    kept: dict[str, Any] = {}
    for name, value in data.items():
        field = None if schema is None else schema.fields.get(name)
        if value is None:
            continue
        if name in _STRUCTURED or (field is not None and field.type not in FREE_FORM):
            kept[name] = _value(field, value)
        else:
            kept[name] = value
    return kept


def _value(field: Field | None, value: Any) -> Any:
    if field is None or not field.is_type:
        return _cleaned(field, value)
    schema = type_named(field.type)
    if field.container == "list" and isinstance(value, list):
        return [_object(schema, {} if item is None else item) for item in value]
    if field.container == "map" and isinstance(value, dict):
        return {name: _object(schema, {} if item is None else item) for name, item in value.items()}
    return _object(schema, value)


def _object(schema: Type, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        name: _value(schema.fields.get(name), item)
        for name, item in value.items()
        if item is not None
    }


def _cleaned(field: Field | None, value: Any) -> Any:
    """A value without named fields."""
    empty = None if field is None else _EMPTY.get(field.type)
    if isinstance(value, dict):
        return {
            name: empty if item is None else _cleaned(None, item)
            for name, item in value.items()
            if item is not None or empty is not None
        }
    if isinstance(value, list):
        return [empty if item is None else _cleaned(None, item) for item in value]
    return value
