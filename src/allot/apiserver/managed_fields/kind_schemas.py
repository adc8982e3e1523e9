"""The value types of a kind, from its schema tables, and its empty object."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

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
from allot.apiserver.schemas.fields import Field, Type
from allot.apiserver.schemas.types import type_named

_SCALARS: Final = {
    "string": ValueType(STRING),
    "bytes": ValueType(STRING),
    "integer": ValueType(NUMERIC),
    "number": ValueType(NUMERIC),
    "boolean": ValueType(BOOLEAN),
    "quantity": ValueType(ANY_SCALAR),
    "time": ValueType(ANY_SCALAR),
    "microtime": ValueType(ANY_SCALAR),
    "int-or-string": ValueType(ANY_SCALAR),
}
_OPAQUE: Final = ValueType(map_=MapType(element=ANYTHING, atomic=True))
"""A RawExtension: an object, owned as a whole."""
_TEXTS: Final = ValueType(list_=ListType(_SCALARS["string"]))
_ZEROES: Final[dict[str, Any]] = {"string": "", "integer": 0, "number": 0, "boolean": False}


@cache
def value_type(name: str, *, atomic: bool = False) -> ValueType:
    """The value type with this OpenAPI name."""
    type_ = type_named(name)
    is_atomic = atomic or type_.map_type == "atomic"

    def fields() -> dict[str, ValueType]:
        return {name: _field_type(field) for name, field in type_.fields.items()}

    return ValueType(map_=MapType(fields, atomic=is_atomic))


def _field_type(field: Field) -> ValueType:
    if field.container == "list":
        element = _single(field)
        associative = field.list_type in ("map", "set")
        keys = field.list_map_keys
        defaults = _key_defaults(field) if keys else {}
        return ValueType(
            list_=ListType(element, associative=associative, keys=keys, defaults=defaults)
        )
    if field.container == "map":
        return ValueType(map_=MapType(element=_single(field), atomic=field.map_type == "atomic"))
    return _single(field, atomic=field.map_type == "atomic")


def _single(field: Field, *, atomic: bool = False) -> ValueType:
    if field.is_type:
        return value_type(field.type, atomic=atomic)
    if field.type == "any":
        return _OPAQUE if field.format else ANYTHING
    if field.type in ("json", "schema-or"):
        return ANYTHING
    return _TEXTS if field.type == "strings" else _SCALARS[field.type]


def _key_defaults(field: Field) -> dict[str, Any]:
    fields = type_named(field.type).fields
    return {
        key: fields[key].default for key in field.list_map_keys if fields[key].default is not None
    }


def empty_object(type_: Type) -> dict[str, Any]:
    """An object without any field set, as the server serializes it."""
    found: dict[str, Any] = {}
    for name, field in type_.fields.items():
        if name in ("apiVersion", "kind"):
            continue
        if field.container:
            if field.required:
                found[name] = None
        elif field.is_type:
            if field.default == {}:
                found[name] = empty_object(type_named(field.type))
            elif field.required:
                found[name] = None
        elif field.required and field.type in _ZEROES:
            found[name] = _ZEROES[field.type]
    return found
