"""The protobuf messages of every environment: wrappers, timestamp and duration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from allot.api.durations import NANOSECONDS
from allot.cel import types
from allot.cel.environment import MessageType
from allot.cel.errors import EvalError
from allot.cel.library.times import checked_duration, checked_timestamp
from allot.cel.types import Type
from allot.cel.values import Uint, Value


def _wrapper(inner: Type, zero: Value, limits: tuple[int, int] | None) -> MessageType:
    def build(fields: dict[str, Value]) -> Value:
        value = fields.get("value", zero)
        if limits is not None and isinstance(value, int) and not limits[0] <= value <= limits[1]:
            unsigned = "unsigned " if isinstance(value, Uint) else ""
            raise EvalError(f"{unsigned}integer overflow")
        return value

    return MessageType(types.wrapper_of(inner), {"value": inner}, build)


def _time(type_: Type, make: Callable[[int], Value]) -> MessageType:
    def build(fields: dict[str, Value]) -> Value:
        seconds, nanos = fields.get("seconds", 0), fields.get("nanos", 0)
        if not isinstance(seconds, int) or not isinstance(nanos, int):
            raise EvalError("no such overload")
        return make(seconds * NANOSECONDS + nanos)

    return MessageType(type_, {"seconds": types.INT, "nanos": types.INT}, build)


_INT32: Final = (-(2**31), 2**31 - 1)
_UINT32: Final = (0, 2**32 - 1)

MESSAGES: Final = {
    "google.protobuf.BoolValue": _wrapper(types.BOOL, False, None),
    "google.protobuf.BytesValue": _wrapper(types.BYTES, b"", None),
    "google.protobuf.DoubleValue": _wrapper(types.DOUBLE, 0.0, None),
    "google.protobuf.FloatValue": _wrapper(types.DOUBLE, 0.0, None),
    "google.protobuf.Int32Value": _wrapper(types.INT, 0, _INT32),
    "google.protobuf.Int64Value": _wrapper(types.INT, 0, None),
    "google.protobuf.StringValue": _wrapper(types.STRING, "", None),
    "google.protobuf.UInt32Value": _wrapper(types.UINT, Uint(0), _UINT32),
    "google.protobuf.UInt64Value": _wrapper(types.UINT, Uint(0), None),
    types.DURATION.name: _time(types.DURATION, checked_duration),
    types.TIMESTAMP.name: _time(types.TIMESTAMP, checked_timestamp),
}
