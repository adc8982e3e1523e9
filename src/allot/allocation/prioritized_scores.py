"""The score of prioritized lists (KEP-4816): nodes that offer more preferred alternatives score higher.

The scheduler ranks nodes by it. A cluster autoscaler that compares node shapes can use the same functions, so
that it prefers what the scheduler will prefer:

    outcomes = [allocate(problem(shape), budget, new_share_id) for shape in shapes]
    scores = [prioritized_list_score(claims, outcome.results) for outcome in outcomes if ...]
    normalized_prioritized_scores(scores)  # 100 for the best, 0 for the worst
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from allot.api.claims import AllocationResult, ResourceClaim

MAX_ALTERNATIVES: Final = 8
_MAX_NORMALIZED_SCORE: Final = 100


class ChosenAlternative(NamedTuple):
    """The alternative that a request of a claim got; `rank` 0 is the most preferred."""

    request: str
    subrequest: str
    rank: int

    @property
    def score(self) -> int:
        """8 for a first alternative, 7 for a second, and so on."""
        return MAX_ALTERNATIVES - self.rank


def chosen_alternatives(
    claim: ResourceClaim, result: AllocationResult
) -> Iterator[ChosenAlternative]:
    """Which alternative each request with alternatives got, in the claim's order."""
    chosen = {device.request for device in result.devices.results if "/" in device.request}
    for request in claim.spec.devices.requests if chosen else ():
        for index, alternative in enumerate(request.first_available):
            if f"{request.name}/{alternative.name}" in chosen:
                yield ChosenAlternative(request.name, alternative.name, index)
                break


def prioritized_list_score(
    claims: Sequence[ResourceClaim], results: Sequence[AllocationResult]
) -> int:
    """The scores of all chosen alternatives, summed over all requests of all claims of a pod.

    `results` are those of `Allocated`, one for each claim. Claims that were allocated before do not count: omit
    them from both.
    """
    return sum(
        chosen.score
        for claim, result in zip(claims, results, strict=True)
        for chosen in chosen_alternatives(claim, result)
    )


def normalized_prioritized_scores(scores: Sequence[int]) -> list[int]:
    """The scores of all nodes spread over 0..100: the best gets 100 and the worst 0.

    If all are the same they all get 100, or 0 if no claim has alternatives.
    """
    if not scores:
        return []
    lowest, highest = min(scores), max(scores)
    if lowest == highest:
        return [_MAX_NORMALIZED_SCORE if highest else 0] * len(scores)
    spread = highest - lowest
    return [(score - lowest) * _MAX_NORMALIZED_SCORE // spread for score in scores]


def kubernetes_prioritized_scores(scores: Sequence[int]) -> list[int]:
    """The same as in v1.38: in proportion to the best score."""
    highest = max(scores, default=0)
    return [score * _MAX_NORMALIZED_SCORE // highest if highest else 0 for score in scores]


def has_alternatives(claims: Iterable[ResourceClaim]) -> bool:
    """Whether any request has alternatives, so that scores of nodes can differ."""
    for claim in claims:
        for request in claim.spec.devices.requests:
            if request.first_available:
                return True
    return False
