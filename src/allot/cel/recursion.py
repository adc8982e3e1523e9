"""Room for deep expressions.

Parser, checker and evaluators follow the nesting of an expression with Python calls. Expressions
may nest deeper than Python's usual recursion limit allows, but not without bound: cel-go's limits,
which ours follow, keep the tree below a few thousand levels.
"""

from __future__ import annotations

import sys
from typing import Final

CALLS_PER_LEVEL: Final = 12
"""The most Python calls any stage needs for one level of nesting."""

_USUAL_ROOM: Final = 40
"""Levels that fit beside the caller's own stack without asking for more."""


def make_room(levels: int) -> None:
    """Let Python nest `levels` of an expression. The limit only ever grows."""
    if levels > _USUAL_ROOM:
        wanted = 1_000 + levels * CALLS_PER_LEVEL
        if sys.getrecursionlimit() < wanted:
            sys.setrecursionlimit(wanted)
