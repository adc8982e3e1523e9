"""Values that are messages in protobuf and scalars in JSON: times, quantities, opaque JSON.

Readers take the data with start and end of the message; writers return the message's content.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Raw

from allot.api.base import ABSENT
from allot.api.json_limits import has_too_many_values, is_too_deep
from allot.api.protobuf.wire import (
    ProtobufError,
    delimited,
    encode_varint,
    int32,
    int64,
    skip,
    too_short,
    varint,
)
from allot.api.quantity import PARSED, ZERO, Quantity, QuantityError, quantity_from_json

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
MIN_SECONDS: Final = -62_135_596_800
"""0001-01-01T00:00:00Z: Go's zero time, which is encoded as empty."""
_MAX_SECONDS: Final = 253_402_300_799


# --- messages with few fields ---


def fields_at(data: bytes, start: int, end: int) -> dict[int, Any]:
    """Numbers, and offsets of bytes, by field number; the last one of each field is used."""
    found: dict[int, Any] = {}
    while start < end:
        tag, start = varint(data, start)
        if tag & 7 == 0:
            found[tag >> 3], start = varint(data, start)
        elif tag & 7 == 2:
            length, start = varint(data, start)
            found[tag >> 3] = (start, start + length)
            start += length
        else:
            start = skip(data, start, tag)
    if start > end:
        raise too_short()
    return found


def _only_bytes(data: bytes, start: int, end: int) -> bytes | None:
    """The content of field 1; None if it is not set."""
    if start + 1 < end and data[start] == 10 and data[start + 1] < 128:
        stop = start + 2 + data[start + 1]
        if stop == end:
            return data[start + 2 : stop]
    place = fields_at(data, start, end).get(1)
    if place is None:
        return None
    if isinstance(place, int):
        raise ProtobufError("proto: wrong wireType = 0 for field 1")
    return data[place[0] : place[1]]


# --- times ---


def read_datetime(data: bytes, start: int, end: int) -> datetime | None:
    """A time; None stands for Go's zero time."""
    if start >= end:
        return None
    moment = _timestamp(data, start, end)
    return None if moment is None else moment.replace(microsecond=0)


def read_time(data: bytes, start: int, end: int) -> str | None:
    """A time in its JSON form, in whole seconds."""
    if start >= end:
        return None
    return _time_text(data[start:end])


@lru_cache(4096)
def _time_text(content: bytes) -> str | None:
    moment = _timestamp(content, 0, len(content))
    return None if moment is None else f"{moment.replace(tzinfo=None, microsecond=0).isoformat()}Z"


def read_microtime(data: bytes, start: int, end: int) -> str | None:
    """A time in its JSON form, in microseconds."""
    if start >= end:
        return None
    moment = _timestamp(data, start, end)
    if moment is None:
        return None
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _timestamp(data: bytes, start: int, end: int) -> datetime | None:
    seconds = nanos = 0
    while start < end:
        tag, start = varint(data, start)
        if tag == 8:
            seconds, start = int64(data, start)
        elif tag == 16:
            nanos, start = int32(data, start)
        else:
            start = skip(data, start, tag)
    if start > end:
        raise too_short()
    if seconds == MIN_SECONDS and not nanos:
        return None
    if not (MIN_SECONDS <= seconds <= _MAX_SECONDS and 0 <= nanos < 1_000_000_000):
        raise ProtobufError(f"a time of {seconds} s and {nanos} ns is out of range")
    return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)


def write_datetime(moment: datetime | None) -> bytes:
    return b"" if moment is None else _time_content(moment, micro=False)


@lru_cache(4096)
def write_time(text: str | None) -> bytes:
    return b"" if not text else _time_content(_parsed_time(text), micro=False)


@lru_cache(4096)
def write_microtime(text: str | None) -> bytes:
    return b"" if not text else _time_content(_parsed_time(text), micro=True)


_FRACTION: Final = re.compile(r"(\.\d{6})\d+")


def _parsed_time(text: str) -> datetime:
    moment = datetime.fromisoformat(_FRACTION.sub(r"\1", text))
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _time_content(moment: datetime, *, micro: bool) -> bytes:
    seconds = (moment - _EPOCH) // _SECOND
    nanos = moment.microsecond * 1000 if micro else 0
    if seconds == MIN_SECONDS and not nanos:
        return b""
    return b"\x08%b\x10%b" % (encode_varint(seconds), encode_varint(nanos))


# --- quantities ---


def read_quantity(data: bytes, start: int, end: int) -> Quantity:
    content = _only_bytes(data, start, end)
    if not content:
        return ZERO
    text = content.decode()
    found = PARSED.get(text)
    if found is not None:
        return found
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise ProtobufError(str(error)) from None


def read_quantity_text(data: bytes, start: int, end: int) -> str:
    return _quantity_text(data[start:end])


@lru_cache(4096)
def _quantity_text(content: bytes) -> str:
    return str(read_quantity(content, 0, len(content)))


def write_quantity(value: Quantity | str | float) -> bytes:
    """A quantity, in its JSON form: a string or a number."""
    if isinstance(value, str):
        quantity = PARSED.get(value) or Quantity.parse(value)
    elif isinstance(value, Quantity):
        quantity = value
    else:
        quantity = quantity_from_json(repr(value) if isinstance(value, float) else value)
    text = str(quantity).encode()
    return b"\n%b%b" % (encode_varint(len(text)), text)


# --- integers or strings ---


def read_int_or_string(data: bytes, start: int, end: int) -> int | str:
    found = fields_at(data, start, end)
    if found.get(1, 0) == 1:
        place = found.get(3, (0, 0))
        return data[place[0] : place[1]].decode() if isinstance(place, tuple) else ""
    number = found.get(2, 0)
    if not isinstance(number, int):
        raise ProtobufError("proto: wrong wireType = 2 for field IntVal")
    number &= 0xFFFFFFFF
    return number - 2**32 if number >= 2**31 else number


def write_int_or_string(value: str | int | None) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + delimited(3, value.encode())
    return b"\x08\x00\x10%b\x1a\x00" % encode_varint(int(value or 0))


# --- lists of strings with their own message type ---


def read_strings(data: bytes, start: int, end: int) -> list[str]:
    found: list[str] = []
    while start < end:
        tag, start = varint(data, start)
        if tag == 10:
            length, start = varint(data, start)
            found.append(data[start : start + length].decode())
            start += length
        else:
            start = skip(data, start, tag)
    if start > end:
        raise too_short()
    return found


def write_strings(values: list[str] | None) -> bytes:
    return b"".join(delimited(1, value.encode()) for value in values or ())


# --- JSON within protobuf ---


def read_raw(data: bytes, start: int, end: int) -> Raw:
    """Opaque JSON, byte for byte."""
    content = _only_bytes(data, start, end)
    if not content:
        return ABSENT
    _decode_json(content)
    return Raw(content)


def read_json(data: bytes, start: int, end: int) -> Any:
    """The values of a JSON document; None if it is empty."""
    content = _only_bytes(data, start, end)
    return _decode_json(content) if content else None


def _decode_json(content: bytes) -> Any:
    if is_too_deep(content):
        raise ProtobufError("json: document is nested too deeply")
    if has_too_many_values(content):
        raise ProtobufError("json: document has too many values")
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtobufError(f"json: {error}") from None


def write_json(value: Any) -> bytes:
    """JSON, from its bytes if they were kept."""
    if value is None:
        return b""
    content = bytes(value) if isinstance(value, Raw) else msgspec.json.encode(value)
    return b"" if content in (b"", b"null") else delimited(1, content)
