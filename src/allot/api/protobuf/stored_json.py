"""Stored JSON to protobuf, without making values of the parts that were written before.

Parts that are remembered, and JSON within protobuf, stay the bytes they are: the parts are looked up by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypedDict

import msgspec
from msgspec import Raw

from allot.api.protobuf.memory import is_remembered
from allot.api.protobuf.schema import SCALARS, Field, message

Parser = Callable[[bytes], Any]


@cache
def parser_of(name: str) -> Parser:
    """Reads the JSON of a message, with `Raw` where it need not be looked into."""
    decode = msgspec.json.Decoder(_type_of(name, ())).decode

    def parse(body: bytes) -> Any:
        try:
            return decode(body)
        except msgspec.ValidationError:  # has fields of other types: what can be written is written
            return msgspec.json.decode(body)

    return parse


def is_null(value: Any) -> bool:
    return value is None or (value.__class__ is Raw and bytes(value) == b"null")


def _type_of(name: str, outer: tuple[str, ...]) -> Any:
    """How a message is parsed: what is not of interest, or contains itself, as it comes."""
    if name in outer:
        return Any
    fields = {field.name: _field_type(field, (*outer, name)) for field in _json_fields(name)}
    if all(type_ is Any for type_ in fields.values()):
        return Any
    made: Any = TypedDict(name.replace(".", "_"), fields, total=False)  # type: ignore[misc]
    return made | None


def _field_type(field: Field, outer: tuple[str, ...]) -> Any:
    if field.type in ("raw", "fields"):
        item: Any = Raw
    elif field.type in SCALARS:
        return Any
    else:
        item = Raw if is_remembered(field.type) else _type_of(field.type, outer)
    if item is Any or not field.container:
        return item
    return (list[item] if field.container == "list" else dict[str, item]) | None


def _json_fields(name: str) -> Iterator[Field]:
    """The fields that a message has in JSON, those of inlined messages among them."""
    for field in message(name).fields:
        if field.name:
            yield field
        else:
            yield from _json_fields(field.type)
