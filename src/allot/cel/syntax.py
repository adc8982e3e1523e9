"""The syntax tree of an expression, built by parser and macros.

Every node has the offset of its token, for messages. Nodes are compared by
identity: the checker keeps types and overloads beside them in mappings.
"""

from __future__ import annotations

from msgspec import Struct

from allot.cel.values import Uint

Literal = None | bool | int | Uint | float | str | bytes
"""The value of a literal."""


class Constant(Struct, eq=False):
    offset: int
    value: Literal


class Identifier(Struct, eq=False):
    """A name. A leading dot, for the root scope, is part of it."""

    offset: int
    name: str


class Select(Struct, eq=False):
    """`operand.field`, or with `test_only` the presence test `has(operand.field)`."""

    offset: int
    operand: Expression
    field: str
    test_only: bool = False


class Call(Struct, eq=False):
    """A function, operator or member call. Operators carry names such as `_+_`."""

    offset: int
    function: str
    target: Expression | None
    arguments: tuple[Expression, ...]


class ListLiteral(Struct, eq=False):
    """`[a, ?b]`: `optional` holds the indices of elements that may be missing."""

    offset: int
    elements: tuple[Expression, ...]
    optional: frozenset[int] = frozenset()


class MapEntry(Struct, eq=False):
    """One `key: value` of a map literal."""

    offset: int
    key: Expression
    value: Expression
    optional: bool = False


class MapLiteral(Struct, eq=False):
    offset: int
    entries: tuple[MapEntry, ...]


class FieldValue(Struct, eq=False):
    """One `field: value` of a message literal."""

    offset: int
    field: str
    value: Expression
    optional: bool = False


class MessageLiteral(Struct, eq=False):
    """`type.Name{field: value}`."""

    offset: int
    type_name: str
    fields: tuple[FieldValue, ...]


class Comprehension(Struct, eq=False):
    """A fold over a range; what every loop macro expands to.

    accumulator := initial; for each element, while `condition` holds: accumulator := `step`;
    the value is `result`. `cel.bind` is the fold over an empty range.
    """

    offset: int
    range: Expression
    variable: str
    variable2: str | None
    accumulator: str
    initial: Expression
    condition: Expression
    step: Expression
    result: Expression

    @property
    def is_bind(self) -> bool:
        return (
            isinstance(self.range, ListLiteral)
            and not self.range.elements
            and isinstance(self.condition, Constant)
            and self.condition.value is False
            and self.accumulator != ACCUMULATOR
        )


Expression = (
    Constant
    | Identifier
    | Select
    | Call
    | ListLiteral
    | MapLiteral
    | MessageLiteral
    | Comprehension
)

ACCUMULATOR = "@result"
"""The accumulator of loop macros. No expression can name it."""


def qualified_name(expression: Expression) -> str | None:
    """`a.b.c` if the expression is nothing but such a path."""
    parts: list[str] = []
    while isinstance(expression, Select):
        if expression.test_only:
            return None
        parts.append(expression.field)
        expression = expression.operand
    if not isinstance(expression, Identifier):
        return None
    return ".".join([expression.name, *reversed(parts)])


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct parts of an expression, in the order they are written."""
    match expression:
        case Select():
            return (expression.operand,)
        case Call():
            target = () if expression.target is None else (expression.target,)
            return target + expression.arguments
        case ListLiteral():
            return expression.elements
        case MapLiteral():
            return tuple(part for entry in expression.entries for part in (entry.key, entry.value))
        case MessageLiteral():
            return tuple(field.value for field in expression.fields)
        case Comprehension():
            return (
                expression.range,
                expression.initial,
                expression.condition,
                expression.step,
                expression.result,
            )
        case _:
            return ()


def depth(expression: Expression) -> int:
    """How deep the tree is. Computed without recursion, because it may be very deep."""
    deepest = 0
    level: list[Expression] = [expression]
    while level:
        deepest += 1
        level = [child for node in level for child in children(node)]
    return deepest
