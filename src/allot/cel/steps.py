"""How often evaluation checks its deadline: after every bounded amount of work.

Loops of expressions check by cost and by iterations; functions that iterate over their arguments take
the deadline as their first argument and check by elements. A single call of C code cannot be
interrupted: it gets at most `PIECE` elements or characters.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final, TypeVar

from allot.deadline import Deadline

STRIDE: Final = 2_048
"""Units of cost, or parts of an expression evaluated in a loop, between two checks."""

BLOCK: Final = 512
"""Elements that a function looks at one by one between two checks."""

FEW: Final = 32
"""Functions that visit no more elements than this need not check: their callers do."""

PIECE: Final = 32_768
"""Elements or characters given to one call of C."""

T = TypeVar("T")


def in_steps(items: list[T], deadline: Deadline) -> Iterator[T]:
    """The elements, with a check of the deadline before every block."""
    if len(items) <= FEW:
        return iter(items)
    return chain.from_iterable(_checked_blocks(items, deadline, BLOCK))


def in_pieces(items: list[T], deadline: Deadline) -> Iterator[list[T]]:
    """The elements in lists of at most `PIECE`, with a check before each."""
    if len(items) <= PIECE:
        return iter((items,))
    return _checked_blocks(items, deadline, PIECE)


def _checked_blocks(items: list[T], deadline: Deadline, size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        deadline()
        yield items[start : start + size]
