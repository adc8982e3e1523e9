"""Proposals: single changes that make claims fit, each verified by an allocation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from allot.allocation.allocator import allocate
from allot.allocation.explain.candidate_changes import candidate_changes, without_requests
from allot.allocation.explain.change_scope import Candidate, Candidates, ChangeScope
from allot.allocation.explain.changes import AnyChange
from allot.allocation.explain.findings import Explanation
from allot.allocation.problem import Abandoned, Allocated, AllocationProblem, Limit, StepBudget
from allot.allocation.search.work_meter import WorkMeter
from allot.deadline import Deadline, DeadlineExceededError, no_deadline


class Proposal(NamedTuple):
    """A change after which all claims fit. Smaller is better."""

    size: int
    change: AnyChange
    problem: AllocationProblem
    """The problem with the change."""


class Proposals(tuple[Proposal, ...]):
    """Changes that would make claims fit, smallest first."""

    is_complete: bool = True
    """False if some candidates were not tried."""


def proposals(
    problem: AllocationProblem,
    budget: StepBudget,
    is_enough: Callable[[], bool] = lambda: False,
    *,
    explanation: Explanation | None = None,
    at_most: int | None = None,
    deadline: Deadline = no_deadline,
) -> Proposals:
    """Changes that would make the claims fit, smallest first; empty if no single change would.

    Of several changes of one kind to the same object, only the smallest is proposed. With the `explanation` of the
    problem, only members of its conflict are changed. At most `at_most` are searched for. `is_enough` is checked before
    each trial, `deadline` throughout: then the proposals so far are returned, marked as incomplete.
    """
    found: dict[object, Proposal] = {}
    is_complete = True
    scope = ChangeScope(explanation)

    def try_all(candidates: Candidates) -> bool:
        """Whether all were tried."""
        for about, candidate in candidates:
            if is_enough() or len(found) == at_most:
                return False
            if about in found and found[about].size <= candidate.size:
                continue
            outcome = allocate(candidate.problem, budget, lambda: "share", deadline=deadline)
            if isinstance(outcome, Allocated):
                found[about] = _proposal(candidate)
            elif isinstance(outcome, Abandoned) and outcome.limit is Limit.TIME:
                return False
        return True

    try:
        is_complete = try_all(candidate_changes(problem, scope, WorkMeter(deadline)))
        if is_complete and not found:
            is_complete = try_all(without_requests(problem, scope))
    except DeadlineExceededError:
        is_complete = False
    verified = Proposals(sorted(found.values(), key=lambda each: each.size))
    verified.is_complete = is_complete
    return verified


def _proposal(candidate: Candidate) -> Proposal:
    return Proposal(candidate.size, candidate.change, candidate.problem)
