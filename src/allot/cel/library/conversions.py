"""Conversions between types: `int("12")`, `string(1.5)`, `type(x)`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

from allot.api.durations import NANOSECONDS
from allot.cel import types
from allot.cel.declarations import function, overload
from allot.cel.errors import EvalError
from allot.cel.library.arithmetic import checked_int, checked_uint
from allot.cel.library.memoize import memoized
from allot.cel.library.times import (
    checked_timestamp,
    duration_text,
    parse_timestamp,
    read_duration,
    timestamp_text,
)
from allot.cel.types import Type
from allot.cel.values import MAX_INT, MAX_UINT, MIN_INT, Duration, Timestamp, Uint, Value, type_of

CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
"""Functions whose calls on constants are computed while compiling."""


def _impossible(value: Value, wanted: Type) -> EvalError:
    return EvalError(f"type conversion error from '{type_of(value).name}' to '{wanted.name}'")


_digits: Final = re.compile(r"[+-]?[0-9]{1,30}").fullmatch


def _double_to_int(value: float) -> int:
    if math.isnan(value) or not float(MIN_INT) < value < float(MAX_INT):
        raise EvalError("integer overflow")
    return int(value)


def _string_to_int(text: str) -> int:
    if not _digits(text) or not MIN_INT <= int(text) <= MAX_INT:
        raise _impossible(text, types.INT)
    return int(text)


def _double_to_uint(value: float) -> Uint:
    if math.isnan(value) or not 0 <= value < 2.0**64:
        raise EvalError("unsigned integer overflow")
    return Uint(value)


def _string_to_uint(text: str) -> Uint:
    if not _digits(text) or text[0] in "+-" or int(text) > MAX_UINT:
        raise _impossible(text, types.UINT)
    return Uint(text)


# Digits are not given back once they are read (`++`): strings may be long, and matching stays linear. What is possessive
# is a single character: groups with choices inside match too much before Python 3.11.5.
_decimal: Final = re.compile(
    r"[+-]?(?:(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:e[+-]?[0-9]++)?|inf(?:inity)?|nan)",
    re.IGNORECASE,
).fullmatch
_hexadecimal: Final = re.compile(
    r"[+-]?0x(?:[0-9a-f]++\.?+[0-9a-f]*+|\.[0-9a-f]++)p[+-]?[0-9]++", re.IGNORECASE
).fullmatch


def _string_to_double(text: str) -> float:
    try:
        if _decimal(text):
            value = float(text)
            if math.isinf(value) and "inf" not in text.lower():
                raise OverflowError
            return value
        if _hexadecimal(text):
            return float.fromhex(text)
    except OverflowError:
        pass
    raise _impossible(text, types.DOUBLE)


_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def _string_to_bool(text: str) -> bool:
    if text not in _BOOLS:
        raise _impossible(text, types.BOOL)
    return _BOOLS[text]


def double_text(value: float) -> str:
    """The shortest string that parses to `value`, with an exponent from a million on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    if 1e-4 <= abs(value) < 1e6:
        return repr(value).removesuffix(".0")
    mantissa, _, exponent_text = f"{value!r}".partition("e")
    sign = "-" if value < 0 else ""
    whole, _, fraction = mantissa.removeprefix("-").partition(".")
    exponent = int(exponent_text or "0") + len(whole) - 1
    digits = (whole + fraction).lstrip("0")
    if whole.strip("0") == "":
        exponent -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    if exponent < -4 or exponent >= 6:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole


def bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from None


@memoized
def _string_to_timestamp(text: str) -> Timestamp:
    timestamp = parse_timestamp(text)
    if timestamp is None:
        raise _impossible(text, types.TIMESTAMP)
    return timestamp


@memoized
def _string_to_duration(text: str) -> Duration:
    duration = read_duration(text)
    if duration is None:
        raise _impossible(text, types.DURATION)
    return duration


_STRING_CONVERSIONS: Final[dict[type, Callable[..., str]]] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    Uint: lambda value: str(int(value)),
    float: double_text,
    str: lambda value: value,
    bytes: bytes_to_string,
    Timestamp: timestamp_text,
    Duration: duration_text,
    types.Type: lambda value: value.name,
}


def to_text(value: Value) -> str | None:
    """The result of `string(value)`; None for values without a string form."""
    convert = _STRING_CONVERSIONS.get(type(value))
    return None if convert is None else convert(value)


def shown(value: Value) -> str:
    """A value as messages show it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    text = to_text(value)
    return str(value) if text is None else text


def _same(value: Value) -> Value:
    return value


FUNCTIONS: Final = (
    function("dyn", overload("to_dyn", "(A) -> dyn", _same)),
    function("type", overload("type", "(A) -> type(A)", type_of)),
    function(
        "bool",
        overload("bool_to_bool", "(bool) -> bool", _same),
        overload("string_to_bool", "(string) -> bool", _string_to_bool),
    ),
    function(
        "bytes",
        overload("bytes_to_bytes", "(bytes) -> bytes", _same),
        overload("string_to_bytes", "(string) -> bytes", str.encode),
    ),
    function(
        "double",
        overload("double_to_double", "(double) -> double", _same),
        overload("int64_to_double", "(int) -> double", float),
        overload("string_to_double", "(string) -> double", _string_to_double),
        overload("uint64_to_double", "(uint) -> double", float),
    ),
    function(
        "duration",
        overload("duration_to_duration", "(duration) -> duration", _same),
        overload("int64_to_duration", "(int) -> duration", Duration),
        overload("string_to_duration", "(string) -> duration", _string_to_duration),
    ),
    function(
        "int",
        overload("int64_to_int64", "(int) -> int", _same),
        overload("double_to_int64", "(double) -> int", _double_to_int),
        overload("duration_to_int64", "(duration) -> int", lambda value: value.nanoseconds),
        overload("string_to_int64", "(string) -> int", _string_to_int),
        overload(
            "timestamp_to_int64", "(timestamp) -> int", lambda t: t.nanoseconds // NANOSECONDS
        ),
        overload("uint64_to_int64", "(uint) -> int", lambda value: checked_int(int(value))),
    ),
    function(
        "string",
        overload("string_to_string", "(string) -> string", _same),
        overload("bool_to_string", "(bool) -> string", to_text),
        overload("bytes_to_string", "(bytes) -> string", bytes_to_string),
        overload("double_to_string", "(double) -> string", double_text),
        overload("duration_to_string", "(duration) -> string", duration_text),
        overload("int64_to_string", "(int) -> string", str),
        overload("timestamp_to_string", "(timestamp) -> string", timestamp_text),
        overload("uint64_to_string", "(uint) -> string", to_text),
    ),
    function(
        "timestamp",
        overload("timestamp_to_timestamp", "(timestamp) -> timestamp", _same),
        overload(
            "int64_to_timestamp",
            "(int) -> timestamp",
            lambda seconds: checked_timestamp(seconds * NANOSECONDS),
        ),
        overload("string_to_timestamp", "(string) -> timestamp", _string_to_timestamp),
    ),
    function(
        "uint",
        overload("uint64_to_uint64", "(uint) -> uint", _same),
        overload("double_to_uint64", "(double) -> uint", _double_to_uint),
        overload("int64_to_uint64", "(int) -> uint", checked_uint),
        overload("string_to_uint64", "(string) -> uint", _string_to_uint),
    ),
)
