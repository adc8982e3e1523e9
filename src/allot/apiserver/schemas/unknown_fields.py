"""Documents of raw kinds without the fields that their type does not have: Go does not keep them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allot.api.identities import GroupVersionKind
from allot.apiserver.schemas.fields import Field, Type
from allot.apiserver.schemas.types import type_named, type_of


def without_unknown_fields(document: Mapping[str, Any], gvk: GroupVersionKind) -> Mapping[str, Any]:
    """The document without them, at every depth; free-form values stay as they are."""
    schema = type_of(gvk)
    return document if schema is None else _object(document, schema)


def _object(data: Mapping[str, Any], schema: Type) -> dict[str, Any]:
    return {
        name: _value(value, schema.fields[name])
        for name, value in data.items()
        if name in schema.fields
    }


def _value(value: Any, field: Field) -> Any:
    if not field.is_type:
        return value
    schema = type_named(field.type)
    if isinstance(value, list):
        return [_item(item, schema) for item in value]
    if field.container == "map" and isinstance(value, dict):
        return {name: _item(item, schema) for name, item in value.items()}
    return _item(value, schema)


def _item(value: Any, schema: Type) -> Any:
    return _object(value, schema) if isinstance(value, dict) else value
