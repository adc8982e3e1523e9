"""The allocator: from an `AllocationProblem` to its outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from allot.allocation.errors import (
    AllocationError,
    EvaluationDeadlineError,
    NoAlternativeLeftError,
    StepsExhaustedError,
    TooManyFailuresError,
)
from allot.allocation.problem import (
    Abandoned,
    Allocated,
    AllocationOutcome,
    AllocationProblem,
    Failed,
    Infeasible,
    Limit,
    StepBudget,
)
from allot.allocation.requests import PreparedClaim, prepare_claims
from allot.allocation.results import claim_result
from allot.allocation.search.attempt import AllocationAttempt, Pick
from allot.allocation.search.backtracking import BacktrackingSearch
from allot.allocation.search.candidates import CandidateRules
from allot.allocation.search.forward_checking import ForwardCheckingSearch
from allot.allocation.search.work_meter import WorkMeter
from allot.api.claims import AllocationResult
from allot.deadline import Deadline, DeadlineExceededError, no_deadline

FAILURES_BEFORE_FORWARD_CHECKING: Final = 50
"""Failures before forward checking starts: it costs more than a few of them, and most problems need none."""
_RESULT_WORK: Final = 8
"""Units of work to write one device into a result."""


def allocate(
    problem: AllocationProblem,
    budget: StepBudget,
    new_share_id: Callable[[], str],
    *,
    deadline: Deadline = no_deadline,
    failures_before_forward_checking: int = FAILURES_BEFORE_FORWARD_CHECKING,
) -> AllocationOutcome:
    """Which devices each claim gets: the result of Kubernetes v1.38 for the same problem.

    `Abandoned` if the step budget or the deadline ends the search. Only caches change, so the same problem
    can be tried again.
    """
    return _Allocation(problem, WorkMeter(deadline)).outcome(
        budget, new_share_id, failures_before_forward_checking
    )


class _Allocation:
    """One run of the allocator."""

    def __init__(self, problem: AllocationProblem, meter: WorkMeter) -> None:
        self._problem = problem
        self._meter = meter
        self._rules: CandidateRules | None = None
        self._search: BacktrackingSearch | None = None

    def outcome(
        self, budget: StepBudget, new_share_id: Callable[[], str], failures: int
    ) -> AllocationOutcome:
        try:
            return self._answer(budget, new_share_id, failures)
        except AllocationError as error:
            return Failed(str(error), self._search.steps if self._search is not None else 0)
        except StepsExhaustedError:
            return self._abandoned(Limit.STEPS)
        except EvaluationDeadlineError as error:
            return self._abandoned(Limit.TIME, error)
        except DeadlineExceededError:
            return self._abandoned(Limit.TIME)

    def _answer(
        self, budget: StepBudget, new_share_id: Callable[[], str], failures: int
    ) -> AllocationOutcome:
        problem = self._problem
        view = problem.inventory.view(problem.node, self._meter)
        if view.error:
            return Failed(view.error)
        gates = problem.inventory.gates
        rules = self._rules = CandidateRules(
            problem.node, view, problem.ledger, gates, self._meter, problem.avoided
        )
        try:
            claims = prepare_claims(problem, rules)
        except NoAlternativeLeftError:
            return Infeasible(view.has_invalid_pools)
        attempt = AllocationAttempt(rules, len(claims))
        requests = [request for claim in claims for request in claim.requests]
        search = self._search = BacktrackingSearch(attempt, requests)
        try:
            solved = search.solve(budget.max_steps, failures)
        except TooManyFailuresError:
            search = self._search = ForwardCheckingSearch(attempt, requests, search)
            search.resume()
            solved = search.solve(budget.max_steps)
        if not solved:
            return Infeasible(view.has_invalid_pools, search.steps)
        skipped = tuple(each for request in requests for each in request.skipped)
        return Allocated(_results(problem, claims, search, new_share_id), search.steps, skipped)

    def _abandoned(self, limit: Limit, at: EvaluationDeadlineError | None = None) -> Abandoned:
        search, alternative = self._search, self._meter.alternative
        return Abandoned(
            search.steps if search is not None else 0,
            search.requests_satisfied if search is not None else 0,
            limit,
            str(alternative.claim.key) if alternative is not None else "",
            alternative.label if alternative is not None else "",
            at.expression if at is not None else "",
            at.device if at is not None else None,
            self._meter.kept + (self._rules.evaluations if self._rules is not None else 0),
        )


def _results(
    problem: AllocationProblem,
    claims: tuple[PreparedClaim, ...],
    search: BacktrackingSearch,
    new_share_id: Callable[[], str],
) -> tuple[AllocationResult, ...]:
    results = []
    at = 0
    picks_by_claim: list[list[Pick]] = [[] for _ in claims]
    for pick in search.attempt.picks:
        picks_by_claim[pick.alternative.claim.index].append(pick)
    for claim in claims:
        search.attempt.rules.meter.spend(_RESULT_WORK * (1 + len(picks_by_claim[claim.index])))
        selected = search.selected[at : at + len(claim.requests)]
        at += len(claim.requests)
        results.append(
            claim_result(
                claim,
                selected,
                picks_by_claim[claim.index],
                search.attempt.devices,
                problem.node,
                problem.inventory.gates,
                new_share_id,
            )
        )
    return tuple(results)
