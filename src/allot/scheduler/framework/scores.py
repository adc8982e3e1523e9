"""Scores: whole numbers from 0 to 100, and how raw ones become such."""

from __future__ import annotations

from typing import Final

MAX_SCORE: Final = 100


def scale_to_max(scores: list[int], *, reverse: bool = False) -> None:
    """Scale in place so that the highest becomes 100; with `reverse`, the lowest is best.

    If all are zero, they stay zero, or become 100 with `reverse`.
    """
    highest = max(scores, default=0)
    if highest == 0:
        if reverse:
            scores[:] = [MAX_SCORE] * len(scores)
        return
    if reverse:
        scores[:] = [MAX_SCORE - MAX_SCORE * score // highest for score in scores]
    else:
        scores[:] = [MAX_SCORE * score // highest for score in scores]
