"""Suggestions for misspelt names: existing names at a small edit distance."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from allot.api import similar_names
from allot.api.similar_names import MAX_SIMILAR

_token: Final = re.compile(r"[^\W_]+")


def close_names(written: str, known: Iterable[str]) -> list[str]:
    """The known names that differ from the written one by a typo, nearest first."""
    limit = 1 if len(written) < 6 else 2
    found = []
    for name in set(known):
        if name == written or abs(len(name) - len(written)) > limit:
            continue
        if name.lower() == written.lower():
            found.append((0, name))
            continue
        distance = edit_distance(written.lower(), name.lower())
        if distance <= limit and not _is_another_word(written, name):
            found.append((distance, name))
    return [name for _, name in sorted(found)]


def only_typo(written: str, known: Iterable[str]) -> str | None:
    """The one name that was probably meant, if the difference is a typo.

    `gpu-2` for `gpu-1` and `gpu-b` for `gpu-a` are different names: numbering is not corrected.
    """
    close = close_names(written, known)
    if len(close) != 1 or _is_numbering(written, close[0]):
        return None
    return close[0]


def did_you_mean(written: str, known: Iterable[str]) -> str:
    """`; did you mean "a"?`, or nothing."""
    return _suggestion(close_names(written, known))


def one_of(written: str, known: Iterable[str], noun: str = "available") -> str:
    """The suggestion where the set of names is closed: the nearest, or all of them."""
    names = sorted(set(known))
    close = close_names(written, names) or [
        name for name in names if edit_distance(written, name) * 2 < max(len(written), 3)
    ]
    return _suggestion(close) or f"; {noun}: {', '.join(names) or 'none'}"


def _suggestion(close: list[str]) -> str:
    return similar_names.did_you_mean(f'"{name}"' for name in close[:MAX_SIMILAR])


def edit_distance(a: str, b: str) -> int:
    """How many characters must be inserted, deleted, replaced or swapped with the next one."""
    two_before: list[int] = []
    before = list(range(len(b) + 1))
    for row, left in enumerate(a, 1):
        current = [row]
        for column, right in enumerate(b, 1):
            cost = min(
                before[column] + 1, current[column - 1] + 1, before[column - 1] + (left != right)
            )
            if row > 1 and column > 1 and left == b[column - 2] and a[row - 2] == right:
                cost = min(cost, two_before[column - 2] + 1)
            current.append(cost)
        two_before, before = before, current
    return before[-1]


def _is_another_word(written: str, name: str) -> bool:
    """Whether they differ in a short word: "gpu" and "cpu" are not typos of each other."""
    return any(
        len(a) == len(b) <= 3 and sorted(a) != sorted(b) for a, b in _different_words(written, name)
    )


def _is_numbering(written: str, name: str) -> bool:
    return any(
        _without_digits(a) == _without_digits(b) or min(len(a), len(b)) < 2
        for a, b in _different_words(written, name)
    )


def _different_words(written: str, name: str) -> list[tuple[str, str]]:
    ours, theirs = _token.findall(written.lower()), _token.findall(name.lower())
    if len(ours) != len(theirs):
        return []
    return [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]


def _without_digits(word: str) -> str:
    return re.sub(r"\d+", "", word)
