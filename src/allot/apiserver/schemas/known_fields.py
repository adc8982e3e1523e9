"""Documents as Go keeps them: without fields that the type does not have, and without optional fields that are zero.

For raw kinds whose unknown fields must not be kept, because others read what is stored as a whole.
"""

from __future__ import annotations

from operator import is_
from typing import Any

from allot.apiserver.schemas.fields import JSON_SCHEMA, Field, Type
from allot.apiserver.schemas.types import type_named


def with_known_fields(
    data: dict[str, Any], schema: Type, pointers: frozenset[str]
) -> dict[str, Any]:
    """The document, itself if it has nothing else; fields named in `pointers` are kept also if they are zero."""
    kept: dict[str, Any] = {}
    for name, value in data.items():
        field = schema.fields.get(name)
        if field is None:
            continue
        if not field.required and name not in pointers and _is_zero(value, field):
            continue
        kept[name] = _known(value, field, pointers)
    same = len(kept) == len(data) and all(kept[name] is value for name, value in data.items())
    return data if same else kept


def _is_zero(value: Any, field: Field) -> bool:
    if field.type in ("string", "boolean"):
        return value in ("", False)
    if field.type == "integer" and field.format == "int32":
        return bool(value == 0)
    return False


def _known(value: Any, field: Field, pointers: frozenset[str]) -> Any:
    name = JSON_SCHEMA if field.type == "schema-or" else field.type
    if name != JSON_SCHEMA and not field.is_type:
        return value
    schema = type_named(name)

    def one(item: Any) -> Any:
        return with_known_fields(item, schema, pointers) if isinstance(item, dict) else item

    if isinstance(value, list):
        items = [one(item) for item in value]
        return value if all(map(is_, items, value)) else items
    if field.container == "map" and isinstance(value, dict):
        values = {key: one(item) for key, item in value.items()}
        return value if all(map(is_, values.values(), value.values())) else values
    return one(value)
