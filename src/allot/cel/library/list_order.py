"""Order and equality of list elements: which types have an order, and where Python's own comparison is CEL's."""

from __future__ import annotations

from typing import Final

from allot.cel.comparison import COMPARED_BY_PYTHON, compare
from allot.cel.errors import NO_SUCH_OVERLOAD, EvalError
from allot.cel.steps import in_pieces
from allot.cel.values import Uint, Value, type_of
from allot.deadline import Deadline

COMPARABLE: Final = (
    ("int", "int"),
    ("uint", "uint"),
    ("double", "double"),
    ("bool", "bool"),
    ("duration", "google.protobuf.Duration"),
    ("timestamp", "google.protobuf.Timestamp"),
    ("string", "string"),
    ("bytes", "bytes"),
)
"""Types with an order, and the names they have in overload ids."""

COMPARABLE_NAMES: Final = frozenset(name for _, name in COMPARABLE)
ORDERED_BY_PYTHON: Final = frozenset({str, bytes, int, Uint, bool})


def order_or_equal(left: Value, right: Value) -> int:
    """The order of two values; 0 if they cannot be compared, such as NaN, which keeps its position."""
    try:
        return compare(left, right)
    except EvalError:
        return 0


def order_of(left: Value, right: Value) -> int:
    if type(left) not in ORDERED_BY_PYTHON and type_of(left).name not in COMPARABLE_NAMES:
        raise EvalError(NO_SUCH_OVERLOAD)
    return order_or_equal(left, right)


def is_ordered_by_python(deadline: Deadline, items: list[Value]) -> bool:
    """Whether all elements are of one class that Python orders as CEL does."""
    kinds: set[type] = set()
    for piece in in_pieces(items, deadline):
        kinds.update(map(type, piece))
    return len(kinds) == 1 and kinds <= ORDERED_BY_PYTHON


def is_hashed_as_equal(deadline: Deadline, *lists: list[Value]) -> bool:
    """Whether all elements are of one class that Python compares, and hashes, as CEL does."""
    kinds: set[type] = set()
    for items in lists:
        for piece in in_pieces(items, deadline):
            kinds.update(map(type, piece))
    return len(kinds) == 1 and kinds <= COMPARED_BY_PYTHON
