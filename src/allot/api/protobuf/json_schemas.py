"""Union fields of custom resources' schemas: a schema, or a simpler value.

Each is a message with two fields in protobuf, and one of the two values in JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from allot.api.protobuf.wire import delimited, skip, too_short, varint

Reader = Callable[[bytes, int, int, Iterator[None]], Any]
Writer = Callable[[Any], bytes]


def read_schema_or_bool(
    data: bytes, start: int, end: int, budget: Iterator[None], read_schema: Reader
) -> Any:
    allows: Any = False
    for number, value in _fields(data, start, end):
        if number == 1 and isinstance(value, int):
            allows = bool(value)
        elif number == 2 and isinstance(value, tuple):
            allows = read_schema(data, *value, budget)
    return allows


def read_schema_or_schemas(
    data: bytes, start: int, end: int, budget: Iterator[None], read_schema: Reader
) -> Any:
    schemas: list[Any] = []
    for number, value in _fields(data, start, end):
        if isinstance(value, tuple) and number in (1, 2):
            schema = read_schema(data, *value, budget)
            if number == 1:
                return schema
            schemas.append(schema)
    return schemas or None


def read_schema_or_strings(
    data: bytes, start: int, end: int, budget: Iterator[None], read_schema: Reader
) -> Any:
    texts: list[str] = []
    for number, value in _fields(data, start, end):
        if not isinstance(value, tuple):
            continue
        if number == 1:
            return read_schema(data, *value, budget)
        if number == 2:
            texts.append(data[value[0] : value[1]].decode())
    return texts or None


def _fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int | tuple[int, int]]]:
    while start < end:
        tag, start = varint(data, start)
        if tag & 7 == 0:
            number, start = varint(data, start)
            yield tag >> 3, number
        elif tag & 7 == 2:
            length, start = varint(data, start)
            if start + length > end:
                raise too_short()
            yield tag >> 3, (start, start + length)
            start += length
        else:
            start = skip(data, start, tag)
    if start > end:
        raise too_short()


def write_schema_or_bool(value: Any, write_schema: Writer) -> bytes:
    if isinstance(value, dict):
        return b"\x08\x01" + delimited(2, write_schema(value))
    return b"\x08\x01" if value else b"\x08\x00"


def write_schema_or_schemas(value: Any, write_schema: Writer) -> bytes:
    if isinstance(value, dict):
        return delimited(1, write_schema(value))
    return b"".join(delimited(2, write_schema(schema)) for schema in value or ())


def write_schema_or_strings(value: Any, write_schema: Writer) -> bytes:
    if isinstance(value, dict):
        return delimited(1, write_schema(value))
    return b"".join(delimited(2, text.encode()) for text in value or ())
