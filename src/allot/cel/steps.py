"""How often evaluation asks its deadline: after every bounded amount of work.

Loops of expressions ask by what they cost and by how often they turn; functions that walk over their
arguments take the deadline as their first argument and ask by elements. What Python does in one call
of C cannot be interrupted: it gets pieces of at most `PIECE` elements or characters.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final, TypeVar

from allot.deadline import Deadline

STRIDE: Final = 2_048
"""Units of cost, or parts of an expression evaluated in a loop, from one ask to the next."""

BLOCK: Final = 512
"""Elements that a function looks at one by one from one ask to the next."""

FEW: Final = 32
"""Functions that look at no more elements than this need not ask: their callers do."""

PIECE: Final = 32_768
"""Elements or characters given to one call of C."""

T = TypeVar("T")


def in_steps(items: list[T], deadline: Deadline) -> Iterator[T]:
    """The elements, with an ask before every block of them."""
    if len(items) <= FEW:
        return iter(items)
    return chain.from_iterable(_asking(items, deadline, BLOCK))


def in_pieces(items: list[T], deadline: Deadline) -> Iterator[list[T]]:
    """The elements in lists of at most `PIECE`, with an ask before each."""
    if len(items) <= PIECE:
        return iter((items,))
    return _asking(items, deadline, PIECE)


def _asking(items: list[T], deadline: Deadline, size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        deadline()
        yield items[start : start + size]
