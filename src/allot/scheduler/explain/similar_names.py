"""Names that may have been meant instead of one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

MAX_SIMILAR: Final = 3
NEARLY: Final = 0.8
"""How similar names must be; names in one domain are similar by that alone."""


def similar_names(name: str, known: Iterable[str]) -> str:
    """`a, b or c`, if these may have been meant; empty if there is nothing like it."""
    close = get_close_matches(name, sorted(set(known)), MAX_SIMILAR, NEARLY)
    *others, last = close or [""]
    return f"{', '.join(others)} or {last}" if others else last
