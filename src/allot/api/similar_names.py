"""Names that may have been meant instead of one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from typing import Final

MAX_SIMILAR: Final = 3
MIN_SIMILARITY: Final = 0.8
"""Names in one domain are similar by that alone."""


def similar_names(
    name: str,
    known: Iterable[str],
    *,
    limit: int = MAX_SIMILAR,
    min_similarity: float = MIN_SIMILARITY,
) -> tuple[str, ...]:
    """The most similar of the known names, best first."""
    return tuple(get_close_matches(name, sorted(set(known)), limit, min_similarity))


def similarity(a: str, b: str) -> float:
    """From 0, nothing in common, to 1, equal."""
    return SequenceMatcher(None, a, b).ratio()


def joined_with_or(names: Iterable[str]) -> str:
    """`a, b or c`."""
    *others, last = [*names] or [""]
    return f"{', '.join(others)} or {last}" if others else last


def did_you_mean(names: Iterable[str]) -> str:
    """`; did you mean a, b or c?`, to append to a message; empty without names."""
    joined = joined_with_or(names)
    return f"; did you mean {joined}?" if joined else ""
