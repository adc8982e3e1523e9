"""The plan of a program: what is evaluated, in which order, at which cost.

Plans follow the way cel-go evaluates, because its costs depend on it. A path such as
`device.attributes["d"].x` is one `Path`: a root and a chain of accessors. A conditional is a path
too, with two possible roots. Everything constant has been computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from allot.cel.declarations import Implementation
from allot.cel.values import Value


@dataclass(frozen=True, slots=True)
class Const:
    value: Value


@dataclass(frozen=True, slots=True)
class Failure:
    """Always the same error: a name that nothing declares, in an unchecked expression."""

    message: str


@dataclass(frozen=True, slots=True)
class Local:
    """A variable that a loop or a binding introduces."""

    slot: int


@dataclass(frozen=True, slots=True)
class Global:
    """A variable of the environment."""

    name: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The root of a path that depends on a condition."""

    condition: Node
    when_true: Node
    when_false: Node


@dataclass(frozen=True, slots=True)
class Access:
    """`.key` or `[key]`; if optional, what is missing ends the path without an error."""

    key: Node
    optional: bool


@dataclass(frozen=True, slots=True)
class Path:
    """A root and accessors. A root that is a plan of its own makes the path a relative one."""

    root: Local | Global | Choice | Node
    accesses: tuple[Access, ...] = ()


@dataclass(frozen=True, slots=True)
class Presence:
    """`has(path.field)`."""

    path: Path
    field: str


@dataclass(frozen=True, slots=True)
class Invoke:
    """A call of a function. Its cost goes by the function and, if there is one, the overload."""

    function: str
    overload_id: str
    arguments: tuple[Node, ...]
    implementation: Implementation
    absorbs_errors: bool = False
    stops_at_errors: bool = False
    """Whether arguments after a failed one are left alone."""
    gives_bool: bool = False
    on_text: Callable[[str], Value] | None = None
    """What the call comes to if its first argument is a text and the rest is constant."""
    asks: bool = False
    """Whether the implementation takes the deadline before the arguments."""


@dataclass(frozen=True, slots=True)
class Logical:
    """`&&` (decided by False) or `||` (decided by True) over two or more terms."""

    decided_by: bool
    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Membership:
    """`x in [constants]`."""

    value: Node
    allowed: frozenset[Value]


@dataclass(frozen=True, slots=True)
class MakeList:
    elements: tuple[Node, ...]
    optional: frozenset[int]


@dataclass(frozen=True, slots=True)
class MakeMap:
    entries: tuple[tuple[Node, Node, bool], ...]
    """Key, value, and whether the value is an optional that may be missing."""


@dataclass(frozen=True, slots=True)
class MakeMessage:
    type_name: str
    fields: tuple[tuple[str, Node, bool], ...]
    build: Callable[[dict[str, Value]], Value] | None


@dataclass(frozen=True, slots=True)
class Append:
    """One step of a macro that collects a list: the accumulator with one more element."""

    accumulator: Local
    element: Node


@dataclass(frozen=True, slots=True)
class Fold:
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


@dataclass(frozen=True, slots=True)
class Bind:
    """A name for a value, which is computed when it is first used."""

    slot: int
    initial: Node
    result: Node


@dataclass(frozen=True, slots=True)
class OptionalOr:
    """`a.or(b)` or `a.orValue(b)`."""

    optional: Node
    otherwise: Node
    unwraps: bool


Node = (
    Const
    | Failure
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


@dataclass(frozen=True, slots=True)
class Plan:
    root: Node
    slots: int
    """How many local variables there are."""
    depth: int
    """How deep nodes nest."""
