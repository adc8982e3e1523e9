"""The score of prioritized alternatives (KEP-4816): the more preferred the alternatives, the better the node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from allot.api.claims import AllocationResult, ResourceClaim
from allot.scheduler.framework.scores import MAX_SCORE

MAX_ALTERNATIVES: Final = 8


def preference_score(claims: Sequence[ResourceClaim], results: Sequence[AllocationResult]) -> int:
    """8 for every request that got its first alternative, 7 for its second, and so on, summed up."""
    return sum(_claim_score(claim, result) for claim, result in zip(claims, results, strict=True))


def _claim_score(claim: ResourceClaim, result: AllocationResult) -> int:
    chosen = {device.request for device in result.devices.results if "/" in device.request}
    score = 0
    for request in claim.spec.devices.requests:
        for index, alternative in enumerate(request.first_available):
            if f"{request.name}/{alternative.name}" in chosen:
                score += MAX_ALTERNATIVES - index
                break
    return score


def has_alternatives(claims: Sequence[ResourceClaim]) -> bool:
    """Whether nodes can differ in their score at all."""
    return any(
        request.first_available for claim in claims for request in claim.spec.devices.requests
    )


def normalize(scores: list[int]) -> None:
    """Spread the scores over 0..100, in place: the best gets 100 and the worst 0 (KEP-4816).

    If all are the same they all get 100, or 0 if there was nothing to prefer.
    """
    if not scores:
        return
    lowest, highest = min(scores), max(scores)
    if lowest == highest:
        scores[:] = [MAX_SCORE if highest else 0] * len(scores)
        return
    scores[:] = [(score - lowest) * MAX_SCORE // (highest - lowest) for score in scores]
