"""Replay: an allocation found earlier, repeated if its devices are still available.

A search may take long, and other claims take and release devices meanwhile. Checking the devices it found is quick.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from allot.allocation.errors import AllocationError
from allot.allocation.problem import AllocationProblem
from allot.allocation.requests import Alternative, PreparedClaim, prepare_claims
from allot.allocation.results import claim_result
from allot.allocation.search.attempt import AllocationAttempt
from allot.allocation.search.candidates import CandidateRules
from allot.allocation.search.work_meter import WorkMeter
from allot.api.claims import AllocationResult
from allot.api.identities import DeviceId
from allot.deadline import Deadline, no_deadline


def replay(
    problem: AllocationProblem,
    results: Sequence[AllocationResult],
    new_share_id: Callable[[], str],
    *,
    deadline: Deadline = no_deadline,
) -> tuple[AllocationResult, ...] | None:
    """One result per claim with the devices of `results`; None if they are not available any more.

    `DeadlineExceededError` if the deadline passes first.
    """
    meter = WorkMeter(deadline)
    view = problem.inventory.view(problem.node, meter)
    if view.error or len(results) != len(problem.claims):
        return None
    rules = CandidateRules(
        problem.node, view, problem.ledger, problem.inventory.gates, meter, problem.avoided
    )
    try:
        claims = prepare_claims(problem, rules)
        attempt = AllocationAttempt(rules, len(claims))
        index_by_id = {device.id: index for index, device in enumerate(attempt.devices)}
        selected = [
            _placed(attempt, claim, result, index_by_id)
            for claim, result in zip(claims, results, strict=True)
        ]
        return tuple(
            claim_result(
                claim,
                alternatives,
                [pick for pick in attempt.picks if pick.alternative.claim is claim],
                attempt.devices,
                problem.node,
                problem.inventory.gates,
                new_share_id,
            )
            for claim, alternatives in zip(claims, selected, strict=True)
        )
    except (AllocationError, _GoneError):
        return None


class _GoneError(Exception):
    """A device does not exist any more, or is not free."""


def _placed(
    attempt: AllocationAttempt,
    claim: PreparedClaim,
    result: AllocationResult,
    index_by_id: dict[DeviceId, int],
) -> list[Alternative]:
    """Place a claim's devices; returns the alternative of each request."""
    wanted = Counter(device.request for device in result.devices.results)
    selected = [_selected(request.alternatives, wanted) for request in claim.requests]
    by_label = {alternative.label: alternative for alternative in selected}
    for device in result.devices.results:
        index = index_by_id.get(device.device_id)
        alternative = by_label.get(device.request)
        if index is None or alternative is None:
            raise _GoneError
        check = attempt.check_required if alternative.wants_all else attempt.check
        pick = check(alternative, index)
        if pick is None:
            raise _GoneError
        attempt.place(pick)
    return selected


def _selected(alternatives: Sequence[Alternative], wanted: Counter[str]) -> Alternative:
    for alternative in alternatives:
        if wanted[alternative.label] == alternative.count and (
            alternative.count or len(alternatives) == 1
        ):
            return alternative
    raise _GoneError
