"""Names that may have been meant instead of one that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from typing import Final

MAX_SIMILAR: Final = 3
MIN_SIMILARITY: Final = 0.8
"""Names in one domain are similar by that alone."""
_MIN_LABEL_SIMILARITY: Final = 0.6
_SHORT: Final = 3
_word: Final = re.compile(r"[^\W\d_]+")


def similar_names(
    name: str,
    known: Iterable[str],
    *,
    limit: int = MAX_SIMILAR,
    min_similarity: float = MIN_SIMILARITY,
) -> tuple[str, ...]:
    """The most similar of the known names, best first.

    Names in one domain must also be similar without it: `nic.example.com` is not `gpu.example.com`. Short words that
    differ are other words, not typos: `cpu` is not `gpu`.
    """
    candidates = sorted({each for each in known if _may_be_meant(name, each)})
    return tuple(get_close_matches(name, candidates, limit, min_similarity))


def _may_be_meant(name: str, other: str) -> bool:
    ours, theirs = name.split("."), other.split(".")
    while len(ours) > 1 and len(theirs) > 1 and ours[-1] == theirs[-1]:
        ours.pop()
        theirs.pop()
    if similarity(".".join(ours), ".".join(theirs)) < _MIN_LABEL_SIMILARITY:
        return False
    words, other_words = (_word.findall(each.lower()) for each in (name, other))
    return len(words) != len(other_words) or not any(
        a != b and len(a) == len(b) <= _SHORT and sorted(a) != sorted(b)
        for a, b in zip(words, other_words, strict=True)
    )


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
