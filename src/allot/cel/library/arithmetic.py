"""Operators on numbers, strings, times and containers, and `size`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, cast

from allot.cel.comparison import compare, contains, equal, is_equal
from allot.cel.declarations import Function, function, overload
from allot.cel.errors import NO_SUCH_OVERLOAD, EvalError
from allot.cel.library.times import checked_duration, checked_timestamp
from allot.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    CelList,
    Duration,
    JoinedList,
    Timestamp,
    Uint,
    Value,
    is_list,
    size,
    to_key,
)
from allot.deadline import Deadline


def checked_int(value: int) -> int:
    if not MIN_INT <= value <= MAX_INT:
        raise EvalError("integer overflow")
    return value


def checked_uint(value: int) -> Uint:
    if not 0 <= value <= MAX_UINT:
        raise EvalError("unsigned integer overflow")
    return Uint(value)


def _mismatch() -> EvalError:
    return EvalError(NO_SUCH_OVERLOAD)


def add(left: Value, right: Value) -> Value:
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return checked_int(left + right)  # type: ignore[operator]
        if kind is str or kind is float or kind is bytes:
            return left + right  # type: ignore[operator]
        if kind is Uint:
            return checked_uint(int(left) + int(right))  # type: ignore[call-overload]
        if kind is Duration:
            left, right = cast("Duration", left), cast("Duration", right)
            return checked_duration(left.nanoseconds + right.nanoseconds)
    if is_list(left) and is_list(right):
        return _join(cast("CelList", left), cast("CelList", right))
    if {kind, other} == {Timestamp, Duration}:
        left, right = cast("Timestamp", left), cast("Timestamp", right)
        return checked_timestamp(left.nanoseconds + right.nanoseconds)
    raise _mismatch()


def _join(left: CelList, right: CelList) -> CelList:
    if not len(left):
        return right
    if not len(right):
        return left
    return JoinedList(left, right)


def subtract(left: Value, right: Value) -> Value:
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return checked_int(left - right)  # type: ignore[operator]
        if kind is float:
            return left - right  # type: ignore[operator]
        if kind is Uint:
            return checked_uint(int(left) - int(right))  # type: ignore[call-overload]
        if kind is Duration or kind is Timestamp:
            left, right = cast("Duration", left), cast("Duration", right)
            return checked_duration(left.nanoseconds - right.nanoseconds)
    if kind is Timestamp and other is Duration:
        left, right = cast("Timestamp", left), cast("Duration", right)
        return checked_timestamp(left.nanoseconds - right.nanoseconds)
    raise _mismatch()


def multiply(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return checked_int(left * right)  # type: ignore[operator]
        if kind is float:
            return left * right  # type: ignore[operator]
        if kind is Uint:
            return checked_uint(int(left) * int(right))  # type: ignore[call-overload]
    raise _mismatch()


def divide(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is type(right):
        if kind is float:
            return _divide_doubles(cast("float", left), cast("float", right))
        if kind is int or kind is Uint:
            dividend, divisor = cast("int", left), cast("int", right)
            if divisor == 0:
                raise EvalError("division by zero")
            quotient = abs(dividend) // abs(divisor)
            if kind is Uint:
                return Uint(quotient)
            return checked_int(quotient if (dividend < 0) == (divisor < 0) else -quotient)
    raise _mismatch()


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def modulo(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is type(right) and (kind is int or kind is Uint):
        dividend, divisor = cast("int", left), cast("int", right)
        if divisor == 0:
            raise EvalError("modulus by zero")
        if kind is Uint:
            return Uint(dividend % divisor)
        if dividend == MIN_INT and divisor == -1:
            raise EvalError("integer overflow")
        rest = abs(dividend) % abs(divisor)
        return -rest if dividend < 0 else rest
    raise _mismatch()


def negate(value: Value) -> Value:
    kind = type(value)
    if kind is int:
        return checked_int(-cast("int", value))
    if kind is float:
        return -cast("float", value)
    if kind is Duration:
        return checked_duration(-cast("Duration", value).nanoseconds)
    raise _mismatch()


def invert(value: Value) -> bool:
    if type(value) is not bool:
        raise _mismatch()
    return not value


def less(left: Value, right: Value) -> bool:
    return compare(left, right) < 0


def less_or_equal(left: Value, right: Value) -> bool:
    return compare(left, right) <= 0


def greater(left: Value, right: Value) -> bool:
    return compare(left, right) > 0


def greater_or_equal(left: Value, right: Value) -> bool:
    return compare(left, right) >= 0


def not_equal(deadline: Deadline, left: Value, right: Value) -> bool:
    """Values that cannot be compared are not equal."""
    return not is_equal(deadline, left, right)


def is_in(deadline: Deadline, needle: Value, haystack: Value) -> bool:
    if isinstance(haystack, dict):
        return to_key(needle) in haystack
    if is_list(haystack):
        return contains(deadline, cast("CelList", haystack), needle)
    raise _mismatch()


def not_strictly_false(value: Value) -> bool:
    return value is not False


def _has_class(*classes: type) -> Callable[[Value], bool]:
    allowed = frozenset(classes)
    return lambda value: type(value) in allowed


_is_comparable: Final = _has_class(bool, bytes, float, Duration, int, str, Timestamp, Uint)
_is_addable: Final = _has_class(bytes, float, Duration, int, list, JoinedList, str, Timestamp, Uint)
_is_subtractable: Final = _has_class(float, Duration, int, Timestamp, Uint)
_is_multipliable: Final = _has_class(float, int, Uint)
_is_divisible: Final = _has_class(int, Uint)
_is_negatable: Final = _has_class(float, Duration, int, bool)


def _is_sized(value: Value) -> bool:
    return isinstance(value, str | bytes | list | JoinedList | dict)


_ORDERED: Final = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_ID_NAMES: Final = {"int": "int64", "uint": "uint64"}
_CROSS_TYPE: Final = (
    ("int", "uint"), ("int", "double"), ("uint", "int"),
    ("uint", "double"), ("double", "int"), ("double", "uint"),
)  # fmt: skip


def _ordering(name: str, id_: str, implementation: Callable[[Value, Value], bool]) -> Function:
    same = (
        overload(f"{id_}_{_ID_NAMES.get(type_, type_)}", f"({type_}, {type_}) -> bool")
        for type_ in _ORDERED
    )
    crossed = (
        overload(f"{id_}_{_ID_NAMES.get(a, a)}_{_ID_NAMES.get(b, b)}", f"({a}, {b}) -> bool")
        for a, b in _CROSS_TYPE
    )
    return function(name, *same, *crossed, implementation=implementation, trait=_is_comparable)


FUNCTIONS: Final = (
    function("_?_:_", overload("conditional", "(bool, A, A) -> A")),
    function("_&&_", overload("logical_and", "(bool, bool) -> bool")),
    function("_||_", overload("logical_or", "(bool, bool) -> bool")),
    function("!_", overload("logical_not", "(bool) -> bool"), implementation=invert),
    function(
        "@not_strictly_false",
        overload("not_strictly_false", "(bool) -> bool"),
        implementation=not_strictly_false,
    ),
    function(
        "_==_", overload("equals", "(A, A) -> bool"), implementation=equal, takes_deadline=True
    ),
    function(
        "_!=_",
        overload("not_equals", "(A, A) -> bool"),
        implementation=not_equal,
        takes_deadline=True,
    ),
    function(
        "_+_",
        overload("add_bytes", "(bytes, bytes) -> bytes"),
        overload("add_double", "(double, double) -> double"),
        overload("add_duration_duration", "(duration, duration) -> duration"),
        overload("add_duration_timestamp", "(duration, timestamp) -> timestamp"),
        overload("add_timestamp_duration", "(timestamp, duration) -> timestamp"),
        overload("add_int64", "(int, int) -> int"),
        overload("add_list", "(list(A), list(A)) -> list(A)"),
        overload("add_string", "(string, string) -> string"),
        overload("add_uint64", "(uint, uint) -> uint"),
        implementation=add,
        trait=_is_addable,
    ),
    function(
        "_-_",
        overload("subtract_double", "(double, double) -> double"),
        overload("subtract_duration_duration", "(duration, duration) -> duration"),
        overload("subtract_int64", "(int, int) -> int"),
        overload("subtract_timestamp_duration", "(timestamp, duration) -> timestamp"),
        overload("subtract_timestamp_timestamp", "(timestamp, timestamp) -> duration"),
        overload("subtract_uint64", "(uint, uint) -> uint"),
        implementation=subtract,
        trait=_is_subtractable,
    ),
    function(
        "_*_",
        overload("multiply_double", "(double, double) -> double"),
        overload("multiply_int64", "(int, int) -> int"),
        overload("multiply_uint64", "(uint, uint) -> uint"),
        implementation=multiply,
        trait=_is_multipliable,
    ),
    function(
        "_/_",
        overload("divide_double", "(double, double) -> double"),
        overload("divide_int64", "(int, int) -> int"),
        overload("divide_uint64", "(uint, uint) -> uint"),
        implementation=divide,
        trait=_is_multipliable,
    ),
    function(
        "_%_",
        overload("modulo_int64", "(int, int) -> int"),
        overload("modulo_uint64", "(uint, uint) -> uint"),
        implementation=modulo,
        trait=_is_divisible,
    ),
    function(
        "-_",
        overload("negate_double", "(double) -> double"),
        overload("negate_int64", "(int) -> int"),
        implementation=negate,
        trait=_is_negatable,
    ),
    _ordering("_<_", "less", less),
    _ordering("_<=_", "less_equals", less_or_equal),
    _ordering("_>_", "greater", greater),
    _ordering("_>=_", "greater_equals", greater_or_equal),
    function(
        "@in",
        overload("in_list", "(A, list(A)) -> bool"),
        overload("in_map", "(A, map(A, B)) -> bool"),
        implementation=is_in,
        takes_deadline=True,
    ),
    function(
        "_[_]",
        overload("index_list", "(list(A), int) -> A"),
        overload("index_map", "(map(A, B), A) -> B"),
    ),
    function(
        "size",
        overload("size_bytes", "(bytes) -> int"),
        overload("bytes_size", "bytes.() -> int"),
        overload("size_list", "(list(A)) -> int"),
        overload("list_size", "list(A).() -> int"),
        overload("size_map", "(map(A, B)) -> int"),
        overload("map_size", "map(A, B).() -> int"),
        overload("size_string", "(string) -> int"),
        overload("string_size", "string.() -> int"),
        implementation=size,
        trait=_is_sized,
    ),
)
