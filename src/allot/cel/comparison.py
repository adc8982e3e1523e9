"""Equality and order of values.

Values of different types are not equal, except that numbers are equal across their types. An
object of Kubernetes on the left of something else, but null, is an error. Plain lists and maps pay
no heed to such errors and go on to the next element; joined lists and optionals hand them on.
"""

from __future__ import annotations

import math
from typing import Final, cast

from allot.cel.errors import NO_SUCH_OVERLOAD, CostLimitError, EvalError
from allot.cel.values import (
    MAX_CONTAINERS,
    MAX_ELEMENTS,
    OBJECTS,
    CelList,
    DomainMap,
    Duration,
    JoinedList,
    Optional,
    Timestamp,
    Uint,
    Value,
    elements,
    is_list,
)

_NUMBERS: Final = frozenset({int, Uint, float})
_CONTAINERS: Final = frozenset({list, JoinedList, dict, DomainMap, Optional})
_TELLING_ERRORS: Final = frozenset({JoinedList, Optional})


def equal(left: Value, right: Value) -> bool:
    """Whether two values are equal; EvalError where Kubernetes cannot tell."""
    if type(left) in _CONTAINERS and type(right) in _CONTAINERS:
        return _contents_equal(left, right)
    if left is None or right is None:
        return left is right
    return _simply_equal(left, right)


def is_equal(left: Value, right: Value) -> bool:
    """Whether two values are equal; what cannot be compared is not."""
    try:
        return equal(left, right)
    except EvalError:
        return False


def _simply_equal(left: Value, right: Value) -> bool:
    kind, other = type(left), type(right)
    if kind is other:
        return left == right
    if kind in _NUMBERS and other in _NUMBERS:
        return _numbers_equal(cast("float", left), cast("float", right))
    if kind in OBJECTS:
        raise EvalError(NO_SUCH_OVERLOAD)
    return False


def _numbers_equal(left: float, right: float) -> bool:
    """Beside a double every number is one, with what that loses."""
    if type(left) is float or type(right) is float:
        return float(left) == float(right)
    return left == right


def _contents_equal(left: Value, right: Value) -> bool:
    """Containers, element by element. Lists that hold each other many times over are given up."""
    waiting = [(left, right, True)]
    containers = seen = 0
    is_error = False
    while waiting:
        one, other, tells_errors = waiting.pop()
        pairs = _paired(one, other)
        if pairs is None:
            return False
        containers += 1
        seen += len(pairs)
        if containers > MAX_CONTAINERS or seen > MAX_ELEMENTS:
            raise CostLimitError
        tells_errors = tells_errors and type(one) in _TELLING_ERRORS
        for pair in pairs:
            if type(pair[0]) in _CONTAINERS and type(pair[1]) in _CONTAINERS:
                waiting.append((*pair, tells_errors))
                continue
            try:
                if not (_simply_equal if type(one) is Optional else equal)(*pair):
                    return False
            except EvalError:
                is_error = is_error or tells_errors
    if is_error:
        raise EvalError(NO_SUCH_OVERLOAD)
    return True


def _paired(left: Value, right: Value) -> list[tuple[Value, Value]] | None:
    """What must be equal for two containers to be; None if they cannot be."""
    if is_list(left) and is_list(right):
        one, other = cast("CelList", left), cast("CelList", right)
        if len(one) != len(other):
            return None
        return list(zip(elements(one), elements(other), strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() != right.keys():
            return None
        return [(value, right[key]) for key, value in left.items()]
    if isinstance(left, Optional) and isinstance(right, Optional):
        if left.has_value is not right.has_value:
            return None
        return [(left.value, right.value)] if left.has_value else []
    return None


def contains(haystack: CelList, needle: Value) -> bool:
    """Whether a list has an element equal to `needle`."""
    return any(is_equal(needle, element) for element in elements(haystack))


def compare(left: Value, right: Value) -> int:
    """Negative, zero or positive; EvalError if there is no order between the two."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        return _compare_numbers(cast("float", left), cast("float", right))
    if kind is not other:
        raise EvalError(NO_SUCH_OVERLOAD)
    if kind is Timestamp or kind is Duration:
        a = cast("Timestamp", left).nanoseconds
        b = cast("Timestamp", right).nanoseconds
        return (a > b) - (a < b)
    if kind is str or kind is bytes or kind is bool:
        # Texts by code point, which is also the order of their UTF-8 bytes.
        first, second = cast("bytes", left), cast("bytes", right)
        return (first > second) - (first < second)
    raise EvalError(NO_SUCH_OVERLOAD)


def _compare_numbers(left: float, right: float) -> int:
    if type(left) is float or type(right) is float:
        left, right = float(left), float(right)
        if math.isnan(left) or math.isnan(right):
            raise EvalError("NaN values cannot be ordered")
    return (left > right) - (left < right)
