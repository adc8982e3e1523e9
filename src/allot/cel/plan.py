"""The evaluation plan of a program: its nodes, their order and their cost.

Plans follow cel-go's order of evaluation, because its costs depend on it. A path such as
`device.attributes["d"].x` is one `Path`: a root and a chain of accessors. A conditional is a path
too, with two possible roots. Everything constant has been computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from allot.cel.declarations import Implementation
from allot.cel.errors import EvalError
from allot.cel.values import JoinedList, Optional, Value


class Const(Struct, frozen=True):
    value: Value


class ErrorNode(Struct, frozen=True):
    """A constant error: an undeclared name in an unchecked expression."""

    message: str


class Local(Struct, frozen=True):
    """A variable that a loop or a binding introduces."""

    slot: int


class Global(Struct, frozen=True):
    """A variable of the environment."""

    name: str


class Choice(Struct, frozen=True):
    """The root of a path that depends on a condition."""

    condition: Node
    when_true: Node
    when_false: Node


class Access(Struct, frozen=True):
    """`.key` or `[key]`; if optional, a missing key ends the path without an error."""

    key: Node
    optional: bool


class Path(Struct, frozen=True):
    """A root and accessors. A root that is a plan of its own makes the path a relative one."""

    root: Local | Global | Choice | Node
    accesses: tuple[Access, ...] = ()


class Presence(Struct, frozen=True):
    """`has(path.field)`."""

    path: Path
    field: str


class Invoke(Struct, frozen=True):
    """A call of a function. Its cost depends on the function and, if resolved, the overload."""

    function: str
    overload_id: str
    arguments: tuple[Node, ...]
    implementation: Implementation
    absorbs_errors: bool = False
    stops_at_errors: bool = False
    """Whether arguments after a failed one are not evaluated."""
    gives_bool: bool = False
    on_text: Callable[[str], Value] | None = None
    """The call as a function of its first argument, a string, if all others are constant."""
    takes_deadline: bool = False
    """Whether the implementation takes the deadline before the arguments."""


class Logical(Struct, frozen=True):
    """`&&` (decided by False) or `||` (decided by True) over two or more terms."""

    decided_by: bool
    terms: tuple[Node, ...]


class Membership(Struct, frozen=True):
    """`x in [constants]`."""

    value: Node
    allowed: frozenset[Value]


class MakeList(Struct, frozen=True):
    elements: tuple[Node, ...]
    optional: frozenset[int]


class MakeMap(Struct, frozen=True):
    entries: tuple[tuple[Node, Node, bool], ...]
    """Key, value, and whether the value is an optional that may be missing."""


class MakeMessage(Struct, frozen=True):
    type_name: str
    fields: tuple[tuple[str, Node, bool], ...]
    build: Callable[[dict[str, Value]], Value] | None


class Append(Struct, frozen=True):
    """One step of a macro that collects a list: the accumulator with one more element."""

    accumulator: Local
    element: Node


class Fold(Struct, frozen=True):
    """A loop. `collects` is the kind of fresh container to start with, if it collects."""

    range: Node
    variable: int
    variable2: int | None
    accumulator: int
    initial: Node
    collects: type[list[Value] | dict[Value, Value]] | None
    condition: Node
    step: Node
    result: Node


class Bind(Struct, frozen=True):
    """A name for a value, which is computed when it is first used."""

    slot: int
    initial: Node
    result: Node


class OptionalOr(Struct, frozen=True):
    """`a.or(b)` or `a.orValue(b)`."""

    optional: Node
    otherwise: Node
    unwraps: bool


class Once:
    """The cached result of a constant part, and its cost in every evaluation.

    Several threads may compute it at the same time; the result is the same.
    """

    __slots__ = ("_is_large", "cost", "is_counted", "is_known", "is_value", "value")

    def __init__(self) -> None:
        self.value: Value = None
        self.cost = 0
        self.is_value = False
        """Whether the cached result is a value, not an `EvalError`."""
        self.is_known = False
        """Whether result and cost are cached."""
        self.is_counted = False
        """Whether the cached result is a value, and its cost is cached."""
        self._is_large = False

    def remember(self, value: Value, cost: int | None = None) -> None:
        """Caches the result, unless it is large: then every evaluation computes it."""
        if self._is_large or self.is_known:
            return
        if not is_small(value):
            self._is_large = True
            return
        self.value = value
        self.is_value = not isinstance(value, EvalError)
        if cost is not None:
            self.cost = cost
            self.is_known = True
            self.is_counted = self.is_value


_SMALL: Final = 4_096
"""The limit of elements and characters of a cached constant."""


def is_small(value: Value) -> bool:
    """Whether a value is small enough to be cached."""
    size = 0
    waiting = [value]
    while waiting and size <= _SMALL:
        part = waiting.pop()
        size += 1
        if isinstance(part, str | bytes):
            size += len(part)
        elif isinstance(part, EvalError):
            size += len(part.message)
        elif isinstance(part, Optional):
            waiting.append(part.value)
        elif isinstance(part, list | JoinedList):
            size += len(part)
            waiting += part if size <= _SMALL else ()
        elif isinstance(part, dict):
            size += len(part)
            waiting += [*part, *part.values()] if size <= _SMALL else ()
    return size <= _SMALL


class Fixed(Struct, frozen=True):
    """A constant part: its result is the same in every evaluation."""

    node: Node
    once: Once


Node = (
    Const
    | ErrorNode
    | Fixed
    | Path
    | Presence
    | Invoke
    | Logical
    | Membership
    | MakeList
    | MakeMap
    | MakeMessage
    | Append
    | Fold
    | Bind
    | OptionalOr
)


class EvaluationPlan(Struct, frozen=True):
    root: Node
    slots: int
    """The number of local variables."""
    depth: int
    """The nesting depth of the nodes."""
