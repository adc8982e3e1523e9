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

from collections.abc import Iterator
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

MAX_CONTAINERS: Final = 200_000
"""More lists and maps within one value are not walked. Few can hold each other very many times."""

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


def is_key(value: Value) -> bool:
    """Whether a map may have the value as a key."""
    return value is None or isinstance(value, str | int | float)


def to_key(value: Value) -> Value:
    """The value in the form in which it is looked up in a dict. What is no key is found nowhere."""
    kind = type(value)
    if kind is str or kind is int or kind is Uint or kind is float or value is None:
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


OBJECTS: Final[set[type]] = {Quantity, Semver}
"""Kubernetes' own values. They cannot be compared with anything but their own kind."""


def register_class(class_: type, type_: types.Type, go_name: str) -> None:
    """Tell what the values of `class_` are. For the modules that bring their own values."""
    _TYPE_BY_CLASS[class_] = type_
    _GO_NAME_BY_CLASS[class_] = go_name
    OBJECTS.add(class_)


def type_of(value: Value) -> types.Type:
    return _TYPE_BY_CLASS[type(value)]


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


def leaves(value: Value) -> Iterator[Value]:
    """What is found within lists and maps, keys and all; CostLimitError if that is too much."""
    waiting = [value]
    containers = seen = 0
    while waiting:
        part = waiting.pop()
        if is_list(part):
            inner = elements(cast("CelList", part))
        elif isinstance(part, dict):
            inner = [*map(from_key, part), *part.values()]
        else:
            yield part
            continue
        containers += 1
        seen += len(inner)
        if containers > MAX_CONTAINERS or seen > MAX_ELEMENTS:
            raise CostLimitError
        waiting += inner


def size(value: Value) -> int:
    """What `size()` and the cost model count; 1 for values without a size."""
    if isinstance(value, str | bytes | list | JoinedList | dict):
        return len(value)
    return 1
