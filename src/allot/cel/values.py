"""Values while an expression is evaluated.

| CEL | Python |
| --- | --- |
| null, bool, int, double, string, bytes | None, bool, int, float, str, bytes |
| uint | `Uint`, an int |
| list | list, or `JoinedList` after `+`; never changed once somebody else can see it |
| map | dict; a bool key is stored as a `BoolKey`, because True is 1 to Python |
| timestamp, duration, optional | `Timestamp`, `Duration`, `Optional` |
| type | `types.Type` |
| quantity, semver | `api.Quantity`, `api.Semver` |

Python's own hashing makes 1, 1u and 1.0 the same key, as CEL wants it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cmp_to_key
from typing import Final, cast

from allot.api.quantity import Quantity
from allot.api.semver import Semver
from allot.cel import types
from allot.cel.errors import CostLimitError, EvalError

Value = object
"""Anything in the table above."""

MAX_INT: Final = 2**63 - 1
MIN_INT: Final = -(2**63)
MAX_UINT: Final = 2**64 - 1

MAX_ELEMENTS: Final = 2_000_000
"""Longer lists can be built (by joining them to themselves) but not walked."""

MAX_CHARACTERS: Final = 16_000_000
"""Longer texts cannot be built: whatever made them cost more than any limit allows."""


class Uint(int):
    """An unsigned 64-bit number."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


class BoolKey:
    """True or False as the key of a map."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


_TRUE_KEY: Final = BoolKey(True)
_FALSE_KEY: Final = BoolKey(False)


def to_key(value: Value) -> Value:
    """The value in the form in which it is looked up in a dict; EvalError if it can be no key."""
    kind = type(value)
    if kind is str or kind is int or kind is Uint or kind is float:
        return value
    if kind is bool:
        return _TRUE_KEY if value else _FALSE_KEY
    return _NO_KEY


_NO_KEY: Final = object()


def from_key(key: Value) -> Value:
    return key.value if type(key) is BoolKey else key


class Optional:
    """A value that may be missing."""

    __slots__ = ("has_value", "value")

    def __init__(self, has_value: bool, value: Value) -> None:
        self.has_value = has_value
        self.value = value


NONE: Final = Optional(False, None)


def optional_of(value: Value) -> Optional:
    return Optional(True, value)


class Timestamp:
    """A moment, in nanoseconds since 1970 UTC."""

    __slots__ = ("nanoseconds",)

    def __init__(self, nanoseconds: int) -> None:
        self.nanoseconds = nanoseconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanoseconds == other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)


class Duration:
    """A length of time in nanoseconds; fits int64."""

    __slots__ = ("nanoseconds",)

    def __init__(self, nanoseconds: int) -> None:
        self.nanoseconds = nanoseconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanoseconds == other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)


class JoinedList:
    """Two lists one after the other. Joining costs nothing, however long they are."""

    __slots__ = ("_flat", "_left", "_length", "_right")

    def __init__(self, left: CelList, right: CelList) -> None:
        self._left: CelList = left
        self._right: CelList = right
        self._length = len(left) + len(right) if _fits(left, right) else MAX_INT
        self._flat: list[Value] | None = None

    def flat(self) -> list[Value]:
        """All elements; CostLimitError if nobody could pay for looking at them."""
        if self._flat is None:
            if self._length > MAX_ELEMENTS:
                raise CostLimitError
            parts: list[list[Value]] = []
            waiting: list[CelList] = [self]
            while waiting:
                part = waiting.pop()
                if isinstance(part, list):
                    parts.append(part)
                elif part._flat is not None:
                    parts.append(part._flat)
                else:
                    waiting += (part._right, part._left)
            self._flat = [element for part in parts for element in part]
        return self._flat

    def __len__(self) -> int:
        return self._length


CelList = list[Value] | JoinedList


def _fits(left: CelList, right: CelList) -> bool:
    return len(left) <= MAX_INT // 4 and len(right) <= MAX_INT // 4


def elements(value: CelList) -> list[Value]:
    return value if type(value) is list else cast("JoinedList", value).flat()


def is_list(value: Value) -> bool:
    return type(value) is list or type(value) is JoinedList


class DomainMap(dict[str, dict[str, Value]]):
    """Attributes or capacities by domain. A domain nobody published is an empty map."""

    __slots__ = ()

    def __missing__(self, domain: object) -> dict[str, Value]:
        return {}


_TYPE_BY_CLASS: Final[dict[type, types.Type]] = {
    type(None): types.NULL,
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    list: types.LIST,
    JoinedList: types.LIST,
    dict: types.MAP,
    DomainMap: types.MAP,
    Timestamp: types.TIMESTAMP,
    Duration: types.DURATION,
    Optional: types.OPTIONAL,
    types.Type: types.TYPE,
    Quantity: types.QUANTITY,
    Semver: types.SEMVER,
}


def register_class(class_: type, type_: types.Type) -> None:
    """Tell which type the values of `class_` have. For the modules that bring their own values."""
    _TYPE_BY_CLASS[class_] = type_


def type_of(value: Value) -> types.Type:
    return _TYPE_BY_CLASS[type(value)]


def is_map(value: Value) -> bool:
    return isinstance(value, dict)


_NUMBERS: Final = frozenset({int, Uint, float})
_OBJECTS: Final = frozenset({Quantity, Semver})
"""Compared with anything but their own kind on the right, these are an error."""


def equal(left: Value, right: Value) -> bool:
    """Whether two values are equal; EvalError where Kubernetes cannot tell."""
    kind, other = type(left), type(right)
    if kind is other and kind is not list:
        if kind is dict or kind is DomainMap:
            return _maps_equal(cast("dict[Value, Value]", left), cast("dict[Value, Value]", right))
        if kind is Optional:
            return _optionals_equal(cast("Optional", left), cast("Optional", right))
        if kind is JoinedList:
            return _lists_equal(cast("JoinedList", left), cast("JoinedList", right))
        return left == right
    if kind in _NUMBERS and other in _NUMBERS:
        return _numbers_equal(cast("float", left), cast("float", right))
    if kind in _OBJECTS:
        raise EvalError("no such overload")
    if is_list(left) and is_list(right):
        return _lists_equal(cast("CelList", left), cast("CelList", right))
    if isinstance(left, dict) and isinstance(right, dict):
        return _maps_equal(left, right)
    return False


def _numbers_equal(left: float, right: float) -> bool:
    """Beside a double every number is one, with what that loses."""
    if type(left) is float or type(right) is float:
        return float(left) == float(right)
    return left == right


def _lists_equal(left: CelList, right: CelList) -> bool:
    if len(left) != len(right):
        return False
    if left is right and len(left) > MAX_ELEMENTS:
        raise CostLimitError
    return all(map(_elements_equal, elements(left), elements(right)))


def _maps_equal(left: dict[Value, Value], right: dict[Value, Value]) -> bool:
    if len(left) != len(right):
        return False
    return all(key in right and _elements_equal(value, right[key]) for key, value in left.items())


def _optionals_equal(left: Optional, right: Optional) -> bool:
    if left.has_value != right.has_value:
        return False
    return not left.has_value or equal(left.value, right.value)


def _elements_equal(left: Value, right: Value) -> bool:
    """Within a container an error is just not equal."""
    try:
        return equal(left, right)
    except EvalError:
        return False


def contains(haystack: CelList, needle: Value) -> bool:
    """Whether a list has an element equal to `needle`."""
    return any(_elements_equal(needle, element) for element in elements(haystack))


def compare(left: Value, right: Value) -> int:
    """Negative, zero or positive; EvalError if there is no order between the two."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        return _compare_numbers(cast("float", left), cast("float", right))
    if kind is not other:
        raise EvalError("no such overload")
    if kind is Timestamp or kind is Duration:
        a = cast("Timestamp", left).nanoseconds
        b = cast("Timestamp", right).nanoseconds
        return (a > b) - (a < b)
    if kind is str or kind is bytes or kind is bool:
        # Texts by code point, which is also the order of their UTF-8 bytes.
        first, second = cast("bytes", left), cast("bytes", right)
        return (first > second) - (first < second)
    raise EvalError("no such overload")


def _compare_numbers(left: float, right: float) -> int:
    if type(left) is float or type(right) is float:
        left, right = float(left), float(right)
        if math.isnan(left) or math.isnan(right):
            raise EvalError("NaN values cannot be ordered")
    return (left > right) - (left < right)


def iterate(value: Value) -> Iterator[Value]:
    """Elements of a list or keys of a map; EvalError for anything else."""
    if is_list(value):
        return iter(elements(cast("CelList", value)))
    if isinstance(value, dict):
        return map(from_key, value)
    raise EvalError(f"got '{go_type_name(value)}', expected iterable type")


_GO_NAME_BY_CLASS: Final[dict[type, str]] = {
    type(None): "types.Null",
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    Timestamp: "types.Timestamp",
    Duration: "types.Duration",
    Optional: "*types.Optional",
    types.Type: "*types.Type",
    Quantity: "cel.Quantity",
    Semver: "cel.Semver",
}


def go_type_name(value: Value) -> str:
    """The name Kubernetes' own messages give to a value's class."""
    return _GO_NAME_BY_CLASS.get(type(value), type_of(value).name)


def size(value: Value) -> int:
    """What `size()` and the cost model count; 1 for values without a size."""
    if isinstance(value, str | bytes | list | JoinedList | dict):
        return len(value)
    return 1


def sort_by_comparison(items: Iterable[Value], order: Callable[[Value, Value], int]) -> list[Value]:
    """`items` in order; equal ones stay as they were."""
    return sorted(items, key=cmp_to_key(order))
