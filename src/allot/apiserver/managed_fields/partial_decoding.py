"""JSON decoded only as deep as fields have separate owners: atomic values stay bytes.

Most of a large object, such as the devices of a slice, is atomic.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypedDict

import msgspec

from allot.apiserver.managed_fields.value_types import ListType, MapType, ValueType


def decode_partly(body: bytes, type_: ValueType) -> dict[str, Any]:
    """The object in `body`, without fields that are not in the schema."""
    document: dict[str, Any] = _decoder(type_).decode(body)
    return document


def decode_all_partly(body: bytes, type_: ValueType) -> list[dict[str, Any]]:
    """The same of the objects in a list."""
    documents: list[dict[str, Any]] = _list_decoder(type_).decode(body)
    return documents


@cache
def _decoder(type_: ValueType) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_shape(type_))


@cache
def _list_decoder(type_: ValueType) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(list[_shape(type_)])  # type: ignore[misc]


@cache
def _shape(type_: ValueType) -> Any:
    if type_.only_scalar or (type_.list is not None and type_.map is not None):
        return Any
    shape = _map_shape(type_.map) if type_.map is not None else _list_shape(type_.list)
    return shape if shape is msgspec.Raw else shape | None


def _list_shape(part: ListType | None) -> Any:
    assert part is not None
    return list[_shape(part.element)] if part.associative else msgspec.Raw  # type: ignore[misc]


def _map_shape(part: MapType) -> Any:
    if part.atomic:
        return msgspec.Raw
    if part.element is not None:
        return dict[str, _shape(part.element)]  # type: ignore[misc]
    fields = {name: _shape(field) for name, field in part.fields.items()}
    return TypedDict("Fields", fields, total=False)  # type: ignore[operator]
