"""Python's recursion limit for deeply nested expressions.

Parser, checker and evaluators are recursive. Expressions may nest deeper than Python's default recursion
limit allows, but not without bound: the parser's limits keep the tree below a few thousand levels.
"""

from __future__ import annotations

import sys
from typing import Final

CALLS_PER_LEVEL: Final = 12
"""The maximum of Python calls that a stage needs per level of nesting."""

_USUAL_ROOM: Final = 40
"""Levels that fit in the default limit, besides the caller's stack."""


def make_room(levels: int) -> None:
    """Raises Python's recursion limit for `levels` of nesting. It is never lowered."""
    if levels > _USUAL_ROOM:
        wanted = 1_000 + levels * CALLS_PER_LEVEL
        if sys.getrecursionlimit() < wanted:
            sys.setrecursionlimit(wanted)
