"""Scores of nodes: first the prioritized alternatives (KEP-4816), then whether devices are ready (KEP-5007).

A raw score has both: the score of the alternatives and, in its lowest bit, whether no device must be made ready.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from allot.allocation import kubernetes_prioritized_scores, normalized_prioritized_scores
from allot.scheduler.framework.scores import MAX_SCORE

READY: Final = 1


def raw_score(preference: int, *, is_ready: bool) -> int:
    return preference << 1 | (READY if is_ready else 0)


def normalized_scores(raw: list[int], *, ranks_readiness: bool, min_max: bool = True) -> list[int]:
    """What the KEP says about alternatives, plus something for nodes where no device must be made ready.

    What is added is less than what any better alternative is worth: half of the smallest step between two
    scores. Where all nodes have the same alternatives, readiness is worth the whole range. Without `min_max`
    scores of alternatives are normalized as v1.38 does it.
    """
    normalized = normalized_prioritized_scores if min_max else kubernetes_prioritized_scores
    scores = normalized([score >> 1 for score in raw])
    if not ranks_readiness or len({score & READY for score in raw}) < 2:
        return scores
    distinct = sorted(set(scores))
    steps = [after - before for before, after in pairwise(distinct)]
    bonus = min(steps) // 2 if steps else MAX_SCORE
    return [
        score + bonus if each & READY else score for score, each in zip(scores, raw, strict=True)
    ]
