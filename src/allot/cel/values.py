"""Values of the expression language at run time.

| CEL | Python |
| --- | --- |
| null, bool, int, double, string, bytes | None, bool, int, float, str, bytes |
| uint | `Uint`, an int |
| list | list, or `JoinedList` after `+`; never modified after it is shared |
| map | dict; a bool key is stored as a `BoolKey`, because True is 1 to Python |
| timestamp, duration, optional | `Timestamp`, `Duration`, `Optional` |
| type | `types.Type` |
| quantity, semver | `api.Quantity`, `api.Semver` |

By Python's hashing 1, 1u and 1.0 are the same key, as in CEL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Final, cast

from allot.api.quantity import Quantity
from allot.api.semver import Semver
from allot.cel import types
from allot.cel.errors import CostLimitError, EvalError
from allot.cel.steps import BLOCK, in_pieces, in_steps
from allot.deadline import Deadline, no_deadline

Value = object
"""Anything in the table above."""

MAX_INT: Final = 2**63 - 1
MIN_INT: Final = -(2**63)
MAX_UINT: Final = 2**64 - 1

MAX_ELEMENTS: Final = 2_000_000
"""Longer lists can be built (by joining them to themselves) but not iterated."""

MAX_CONTAINERS: Final = 200_000
"""More lists and maps within one value are not iterated: a few can be nested in each other very often."""

MAX_CHARACTERS: Final = 16_000_000
"""Longer strings cannot be built: they cost more than any limit allows."""


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
    """The value as key of a dict. A value that cannot be a key is never found."""
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
    """Two lists one after the other. Joining takes constant time.

    Reading a few elements is cheap, too: the lists are copied into one only after as many steps as copying
    takes, or when all elements are needed.
    """

    __slots__ = ("_flat", "_left", "_length", "_right", "_steps")

    def __init__(self, left: CelList, right: CelList) -> None:
        self._left: CelList = left
        self._right: CelList = right
        self._length = len(left) + len(right) if _fits(left, right) else MAX_INT
        self._flat: list[Value] | None = None
        self._steps = 0

    def flat(self, deadline: Deadline = no_deadline) -> list[Value]:
        """All elements; CostLimitError if there are more than any limit allows."""
        if self._flat is None:
            if self._length > MAX_ELEMENTS:
                raise CostLimitError
            elements: list[Value] = []
            for part in self._parts(deadline):
                for piece in in_pieces(part, deadline):
                    elements += piece
            self._flat = elements
        return self._flat

    def _parts(self, deadline: Deadline = no_deadline) -> Iterator[list[Value]]:
        """The plain lists it consists of, from left to right."""
        waiting: list[CelList] = [self]
        while waiting:
            part = waiting.pop()
            if isinstance(part, list):
                yield part
            elif part._flat is not None:
                yield part._flat
            elif part._left is part._right:
                # A list joined to itself, possibly many times: copied once.
                half = elements(part._left, deadline)
                yield half
                yield half
            else:
                waiting += (part._right, part._left)

    def __iter__(self) -> Iterator[Value]:
        if self._length > MAX_ELEMENTS:
            raise CostLimitError
        return chain.from_iterable(self._parts() if self._flat is None else (self._flat,))

    def at(self, index: int) -> Value:
        """The element at an index, which must be one."""
        part: CelList = self
        while type(part) is JoinedList and part._flat is None:
            self._steps += 1
            before = len(part._left)
            if index < before:
                part = part._left
            else:
                index -= before
                part = part._right
        if self._steps * _STEPS_PER_ELEMENT > self._length:
            self.flat()
        return part[index] if type(part) is list else cast("JoinedList", part).flat()[index]

    def slice(self, start: int, end: int) -> list[Value]:
        """The elements from `start` to before `end`."""
        found: list[Value] = []
        position = 0
        waiting: list[CelList] = [self]
        while waiting and position < end:
            part = waiting.pop()
            following = position + len(part)
            if following <= start:
                position = following
            elif type(part) is JoinedList and part._flat is None:
                self._steps += 1
                waiting += (part._right, part._left)
            else:
                whole = part if type(part) is list else cast("JoinedList", part).flat()
                found += whole[max(start - position, 0) : end - position]
                position = following
        if self._steps * _STEPS_PER_ELEMENT > self._length:
            self.flat()
        return found

    def __len__(self) -> int:
        return self._length


_STEPS_PER_ELEMENT: Final = 16
"""The number of elements copied in the time of one step."""

CelList = list[Value] | JoinedList


def _fits(left: CelList, right: CelList) -> bool:
    return len(left) <= MAX_INT // 4 and len(right) <= MAX_INT // 4


def elements(value: CelList, deadline: Deadline = no_deadline) -> list[Value]:
    return value if type(value) is list else cast("JoinedList", value).flat(deadline)


def element(value: CelList, index: int) -> Value:
    """The element at an index, which must be one."""
    return value[index] if type(value) is list else cast("JoinedList", value).at(index)


def is_list(value: Value) -> bool:
    return type(value) is list or type(value) is JoinedList


class DomainMap(dict[str, dict[str, Value]]):
    """Attributes or capacities by domain. An unpublished domain is an empty map."""

    __slots__ = ()

    def __missing__(self, domain: object) -> dict[str, Value]:
        return {}


class LazyMap:
    """A map whose values are computed when they are first read."""

    __slots__ = ("_compute", "_known")

    def __init__(self, compute: Mapping[str, Callable[[], Value]]) -> None:
        """The functions raise EvalError if there is no value."""
        self._compute = compute
        self._known: dict[str, Value] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._compute

    def __getitem__(self, key: str) -> Value:
        if key not in self._known:
            try:
                self._known[key] = self._compute[key]()
            except EvalError as error:
                self._known[key] = error
        found = self._known[key]
        if isinstance(found, EvalError):
            raise EvalError(found.message)
        return found


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
    LazyMap: types.MAP,
    Timestamp: types.TIMESTAMP,
    Duration: types.DURATION,
    Optional: types.OPTIONAL,
    types.Type: types.TYPE,
    Quantity: types.QUANTITY,
    Semver: types.SEMVER,
}


OBJECTS: Final[set[type]] = {Quantity, Semver}
"""Kubernetes' own values. They are comparable only within their own type."""


def register_class(class_: type, type_: types.Type, go_name: str) -> None:
    """Registers the CEL type of a Python class, for modules that define their own values."""
    _TYPE_BY_CLASS[class_] = type_
    _GO_NAME_BY_CLASS[class_] = go_name
    OBJECTS.add(class_)


def type_of(value: Value) -> types.Type:
    return _TYPE_BY_CLASS[type(value)]


def iterate(value: Value) -> Iterator[Value]:
    """Elements of a list or keys of a map; EvalError for anything else."""
    if is_list(value):
        return iter(cast("CelList", value))
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
    """The Go name of a value's class in Kubernetes' messages."""
    return _GO_NAME_BY_CLASS.get(type(value), type_of(value).name)


def leaves(value: Value, deadline: Deadline = no_deadline) -> Iterator[Value]:
    """All values within lists and maps, including keys; CostLimitError if there are too many."""
    waiting = [value]
    containers = seen = 0
    while waiting:
        part = waiting.pop()
        if is_list(part):
            inner = elements(cast("CelList", part), deadline)
        elif isinstance(part, dict):
            inner = [*map(from_key, part), *part.values()]
        else:
            yield part
            continue
        containers += 1
        seen += len(inner)
        if containers > MAX_CONTAINERS or seen > MAX_ELEMENTS:
            raise CostLimitError
        if containers % BLOCK == 0:
            deadline()
        for item in in_steps(inner, deadline):
            if type(item) in _NESTING:
                waiting.append(item)
            else:
                yield item


_NESTING: Final = frozenset({list, JoinedList, dict, DomainMap})


def size(value: Value) -> int:
    """What `size()` and the cost model count; 1 for values without a size."""
    if isinstance(value, str | bytes | list | JoinedList | dict):
        return len(value)
    return 1
