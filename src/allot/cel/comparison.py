"""Equality and order of values.

Values of different types are not equal, except that numbers are equal across their types. Comparing
a Kubernetes value (left) with a value of another type, except null, is an error. Plain lists and maps
ignore such errors and go on to the next element; joined lists and optionals propagate them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, cast

from allot.cel.errors import NO_SUCH_OVERLOAD, CostLimitError, EvalError
from allot.cel.steps import BLOCK, FEW, in_pieces, in_steps
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
from allot.deadline import Deadline

_NUMBERS: Final = frozenset({int, Uint, float})
_CONTAINERS: Final = frozenset({list, JoinedList, dict, DomainMap, Optional})
_TELLING_ERRORS: Final = frozenset({JoinedList, Optional})


def equal(deadline: Deadline, left: Value, right: Value) -> bool:
    """Whether two values are equal; EvalError where Kubernetes cannot compare them."""
    if type(left) in _CONTAINERS and type(right) in _CONTAINERS:
        return _contents_equal(deadline, left, right)
    if left is None or right is None:
        return left is right
    return _simply_equal(left, right)


def is_equal(deadline: Deadline, left: Value, right: Value) -> bool:
    """Whether two values are equal; what cannot be compared is not."""
    try:
        return equal(deadline, left, right)
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
    """Compared with a double, a number is converted to one, with loss of precision."""
    if type(left) is float or type(right) is float:
        return float(left) == float(right)
    return left == right


def _contents_equal(deadline: Deadline, left: Value, right: Value) -> bool:
    """Containers, element by element. Lists nested in each other very many times are not compared."""
    waiting = [(left, right, True)]
    containers = seen = 0
    is_error = False
    while waiting:
        if containers % FEW == 0:
            deadline()
        one, other, tells_errors = waiting.pop()
        size = _common_size(one, other)
        if size is None:
            return False
        containers += 1
        seen += size
        if containers > MAX_CONTAINERS or seen > MAX_ELEMENTS:
            raise CostLimitError
        if size > FEW:
            simply = _lists_simply_equal(deadline, one, other)
            if simply is False:
                return False
            if simply:
                continue
        tells_errors = tells_errors and type(one) in _TELLING_ERRORS
        is_optional = type(one) is Optional
        for pair in _pairs(deadline, one, other):
            first, second = pair
            kind = type(first)
            if kind is type(second) and kind in COMPARED_BY_PYTHON:
                if first != second:
                    return False
                continue
            if kind in _CONTAINERS and type(second) in _CONTAINERS:
                waiting.append((first, second, tells_errors))
                continue
            try:
                if not (_simply_equal if is_optional else _equal_elements)(first, second):
                    return False
            except EvalError:
                is_error = is_error or tells_errors
    if is_error:
        raise EvalError(NO_SUCH_OVERLOAD)
    return True


def _equal_elements(left: Value, right: Value) -> bool:
    """Two values that are not both containers."""
    return left is right if left is None or right is None else _simply_equal(left, right)


def _common_size(left: Value, right: Value) -> int | None:
    """The number of elements to compare; None if the containers cannot be equal."""
    if type(left) is type(right) is list:
        return len(left) if len(left) == len(right) else None
    if is_list(left) and is_list(right):
        one, other = cast("CelList", left), cast("CelList", right)
        return len(one) if len(one) == len(other) else None
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) if left.keys() == right.keys() else None
    if isinstance(left, Optional) and isinstance(right, Optional):
        return int(left.has_value) if left.has_value is right.has_value else None
    return None


def _lists_simply_equal(deadline: Deadline, left: Value, right: Value) -> bool | None:
    """For lists of one class that Python compares as CEL does, whether they are; else None."""
    if not is_list(left):
        return None
    one = elements(cast("CelList", left), deadline)
    kind = type(one[0])
    if kind not in COMPARED_BY_PYTHON:
        return None
    other = elements(cast("CelList", right), deadline)
    both = zip(in_pieces(one, deadline), in_pieces(other, deadline), strict=True)
    for piece, other_piece in both:
        if not {*map(type, piece)} == {*map(type, other_piece)} == {kind}:
            return None
        if piece != other_piece:
            return False
    return True


COMPARED_BY_PYTHON: Final = frozenset({str, bytes, int, bool})
"""Classes whose own equality, within the class, is that of CEL."""


def _pairs(deadline: Deadline, left: Value, right: Value) -> Iterator[tuple[Value, Value]]:
    """The pairs of elements to compare in two containers of one size."""
    if type(left) is type(right) is list and len(left) <= FEW:
        return zip(left, right, strict=True)
    if is_list(left):
        one = elements(cast("CelList", left), deadline)
        other = elements(cast("CelList", right), deadline)
        return zip(in_steps(one, deadline), in_steps(other, deadline), strict=True)
    if isinstance(left, dict):
        entries = cast("dict[Value, Value]", right)
        return ((value, entries[key]) for key, value in in_steps([*left.items()], deadline))
    one_held, other_held = cast("Optional", left), cast("Optional", right)
    return iter([(one_held.value, other_held.value)] if one_held.has_value else [])


def contains(deadline: Deadline, haystack: CelList, needle: Value) -> bool:
    """Whether a list has an element equal to `needle`."""
    return position(deadline, elements(haystack, deadline), needle) >= 0


def position(deadline: Deadline, items: list[Value], wanted: Value) -> int:
    """The index of the first element equal to `wanted`; -1 if no element is."""
    if not _is_found_by_python(wanted):
        for index, item in enumerate(in_steps(items, deadline)):
            if is_equal(deadline, wanted, item):
                return index
        return -1
    before = 0
    for piece in in_pieces(items, deadline):
        for index in _python_positions(deadline, piece, wanted):
            if is_equal(deadline, wanted, piece[index]):
                return before + index
        before += len(piece)
    return -1


def _is_found_by_python(wanted: Value) -> bool:
    """Whether everything equal to `wanted` is also equal to Python.

    Compared with a double, large integers lose precision. Python also treats 1 and True as equal.
    """
    if isinstance(wanted, int | float):
        return -_EXACT < wanted < _EXACT
    return type(wanted) is str


_EXACT: Final = 2**53
"""Doubles represent all integers up to here exactly."""


def _python_positions(deadline: Deadline, items: list[Value], wanted: Value) -> Iterator[int]:
    found = -1
    for count in range(len(items)):
        try:
            found = items.index(wanted, found + 1)
        except ValueError:
            return
        if count % BLOCK == BLOCK - 1:
            deadline()
        yield found


def compare(left: Value, right: Value) -> int:
    """Negative, zero or positive; EvalError if the two cannot be ordered."""
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
        # Strings by code point, which is also the order of their UTF-8 bytes.
        first, second = cast("bytes", left), cast("bytes", right)
        return (first > second) - (first < second)
    raise EvalError(NO_SUCH_OVERLOAD)


def _compare_numbers(left: float, right: float) -> int:
    if type(left) is float or type(right) is float:
        left, right = float(left), float(right)
        if math.isnan(left) or math.isnan(right):
            raise EvalError("NaN values cannot be ordered")
    return (left > right) - (left < right)
