"""Allocation from the question to its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from allot.allocation.attempt import Attempt
from allot.allocation.candidates import CandidateRules
from allot.allocation.errors import AllocationError, StepsExhaustedError, TooManyFailuresError
from allot.allocation.foresight import ForesightedSearch
from allot.allocation.problem import (
    Abandoned,
    Allocated,
    AllocationProblem,
    Failed,
    Infeasible,
    Outcome,
    StepBudget,
)
from allot.allocation.requests import PreparedClaim, prepare_claims
from allot.allocation.results import claim_result
from allot.allocation.search import Search
from allot.api.claims import AllocationResult

FAILURES_WITHOUT_FORESIGHT: Final = 50
"""Looking ahead costs more than a few wrong turns; most problems are solved before."""


def allocate(
    problem: AllocationProblem,
    budget: StepBudget,
    new_share_id: Callable[[], str],
    *,
    failures_without_foresight: int = FAILURES_WITHOUT_FORESIGHT,
) -> Outcome:
    """Which devices each claim gets: the answer of Kubernetes v1.38 to the same question."""
    view = problem.inventory.view(problem.node)
    if view.error:
        return Failed(view.error)
    rules = CandidateRules(problem.node, view, problem.ledger, problem.inventory.gates)
    search: Search | None = None
    try:
        claims = prepare_claims(problem, rules)
        attempt = Attempt(rules, len(claims))
        requests = [request for claim in claims for request in claim.requests]
        search = Search(attempt, requests)
        try:
            solved = search.solve(budget.max_steps, failures_without_foresight)
        except TooManyFailuresError:
            search.unwind()
            search = ForesightedSearch(attempt, requests, search)
            solved = search.solve(budget.max_steps)
        if not solved:
            return Infeasible(view.has_invalid_pools, search.steps)
        results = _results(problem, claims, search, new_share_id)
    except AllocationError as error:
        return Failed(str(error), search.steps if search is not None else 0)
    except StepsExhaustedError as error:
        return Abandoned(error.steps, error.requests_satisfied)
    return Allocated(results, search.steps)


def _results(
    problem: AllocationProblem,
    claims: tuple[PreparedClaim, ...],
    search: Search,
    new_share_id: Callable[[], str],
) -> tuple[AllocationResult, ...]:
    results = []
    at = 0
    picks = search.attempt.picks
    for claim in claims:
        selected = search.selected[at : at + len(claim.requests)]
        at += len(claim.requests)
        results.append(
            claim_result(
                claim,
                selected,
                [pick for pick in picks if pick.alternative.claim is claim],
                search.attempt.devices,
                problem.node,
                problem.inventory.gates,
                new_share_id,
            )
        )
    return tuple(results)
