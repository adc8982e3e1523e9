"""The value types of a custom resource, from its structural schema."""

from __future__ import annotations

from typing import Final

from allot.apiserver.managed_fields.kind_schemas import value_type
from allot.apiserver.managed_fields.value_types import (
    ANY_SCALAR,
    ANYTHING,
    BOOLEAN,
    NUMERIC,
    STRING,
    ListType,
    MapType,
    ValueType,
)
from allot.apiserver.schemas.tables import META
from allot.validation.structural.schemas import Schema

_SCALARS: Final = {
    "string": ValueType(STRING),
    "integer": ValueType(NUMERIC),
    "number": ValueType(NUMERIC),
    "boolean": ValueType(BOOLEAN),
}


def custom_value_type(schema: Schema) -> ValueType:
    """The type of a whole object."""
    return _object(schema, is_resource=True)


def _type(schema: Schema) -> ValueType:
    if schema.is_int_or_string:
        return ValueType(ANY_SCALAR)
    if schema.type == "array":
        return _list(schema)
    if schema.type == "object" or schema.is_embedded:
        return _object(schema, is_resource=schema.is_embedded)
    return _SCALARS.get(schema.type, ANYTHING)


def _list(schema: Schema) -> ValueType:
    items = schema.items
    element = _type(items) if items is not None else ANYTHING
    defaults = {}
    if items is not None:
        for key in schema.list_map_keys:
            child = items.properties.get(key)
            if child is not None and child.has_default:
                defaults[key] = child.default
    return ValueType(
        list_=ListType(
            element,
            associative=schema.list_type in ("map", "set"),
            keys=schema.list_map_keys if schema.list_type == "map" else (),
            defaults=defaults,
        )
    )


def _object(schema: Schema, *, is_resource: bool) -> ValueType:
    def fields() -> dict[str, ValueType]:
        found = {name: _type(child) for name, child in schema.properties.items()}
        if is_resource:
            found |= {
                "apiVersion": _SCALARS["string"],
                "kind": _SCALARS["string"],
                "metadata": value_type(f"{META}.ObjectMeta"),
            }
        return found

    element: ValueType | None = None
    if schema.additional is not None:
        element = _type(schema.additional)
    elif schema.preserves_unknown or schema.allows_additional:
        element = ANYTHING
    return ValueType(map_=MapType(fields, element, atomic=schema.map_type == "atomic"))
