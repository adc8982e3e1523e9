"""Protobuf's wire format: varints, tags, lengths, and skipping of fields."""

from __future__ import annotations

import struct
from typing import Final

from allot.api.decoding import DecodeError

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2

MAX_GROUPS: Final = 100
"""The maximum nesting of groups, which Kubernetes does not use."""
_MASK64: Final = 2**64 - 1


class ProtobufError(DecodeError):
    """Invalid protobuf. API clients see the message of this error."""


def too_short() -> ProtobufError:
    return ProtobufError("unexpected EOF")


def varint(data: bytes, start: int) -> tuple[int, int]:
    """The unsigned number at an offset, and its end. Raises `IndexError` at the end of the data."""
    value = data[start]
    if value < 128:
        return value, start + 1
    value &= 127
    shift = 7
    while True:
        start += 1
        byte = data[start]
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _MASK64, start + 1
        shift += 7
        if shift >= 70:
            raise ProtobufError("proto: integer overflow")


def int64(data: bytes, start: int) -> tuple[int, int]:
    value, end = varint(data, start)
    return (value - 2**64 if value >= 2**63 else value), end


def int32(data: bytes, start: int) -> tuple[int, int]:
    value, end = varint(data, start)
    value &= 0xFFFFFFFF
    return (value - 2**32 if value >= 2**31 else value), end


def double(data: bytes, start: int) -> tuple[float, int]:
    """The number at an offset, an integer if it is whole, and its end."""
    if start + 8 > len(data):
        raise too_short()
    (number,) = struct.unpack_from("<d", data, start)
    return (int(number) if number.is_integer() else number), start + 8


def skip(data: bytes, start: int, tag: int) -> int:
    """Where the field ends whose tag ends at `start`."""
    depth = 0
    while True:
        if tag >> 3 == 0:
            raise ProtobufError(f"proto: illegal tag {tag >> 3} (wire type {tag & 7})")
        match tag & 7:
            case 0:
                start = varint(data, start)[1]
            case 1:
                start += 8
            case 2:
                length, start = varint(data, start)
                start += length
            case 3:
                depth += 1
                if depth > MAX_GROUPS:
                    raise ProtobufError("proto: groups are nested too deeply")
            case 4:
                depth -= 1
                if depth < 0:
                    raise ProtobufError("proto: unexpected end of group")
            case 5:
                start += 4
            case wire_type:
                raise ProtobufError(f"proto: illegal wireType {wire_type}")
        if depth == 0:
            return start
        tag, start = varint(data, start)


# --- writing ---


def encode_varint(value: int) -> bytes:
    """Negative numbers of any type are written in 64 bits."""
    value &= _MASK64
    if value < 128:
        return _SMALL[value]
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL: Final = tuple(bytes((value,)) for value in range(128))


def encode_tag(number: int, wire_type: int) -> bytes:
    return encode_varint(number << 3 | wire_type)


def delimited(number: int, content: bytes) -> bytes:
    """A length-delimited field: a string, bytes or a message."""
    return b"%b%b%b" % (encode_tag(number, BYTES), encode_varint(len(content)), content)
