"""Conflicts: irreducible sets of requests and constraints that cannot be satisfied together.

    each request alone ──one cannot be satisfied──▶ that is the conflict
        │ all can
    everything together ──▶ remove members one after the other (deletion filtering)
        │                      └─▶ irreducible: without any one member the rest can be satisfied
        └─▶ look for a shorter one: all smaller sets, in order

Every test is an allocation of a subproblem, by the rules of the allocator and within one step budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import combinations
from typing import Final, NamedTuple

from allot.allocation.allocator import allocate
from allot.allocation.explain.subproblems import (
    Member,
    Members,
    concerns,
    members_of,
    restricted,
)
from allot.allocation.problem import (
    Abandoned,
    Allocated,
    AllocationProblem,
    Failed,
    Limit,
    StepBudget,
)
from allot.allocation.search.work_meter import WorkMeter
from allot.deadline import Deadline, DeadlineExceededError, no_deadline

PROOF_STEPS: Final = 10_000
"""Steps for all subproblems of one node together."""
MAX_SUBPROBLEMS: Final = 400
"""Subproblems of one node: each takes time even if it takes no step."""

_SUBPROBLEM_WORK: Final = 64
"""Units of work to build a subproblem, beside solving it."""


class Proof(Enum):
    """How much of a conflict is proven."""

    IRREDUCIBLE = "Irreducible"
    """These cannot be satisfied together, and without any one of them the others can."""
    REDUCIBLE = "Reducible"
    """These cannot be satisfied together. Whether all of them are needed is not proven."""
    UNPROVEN = "Unproven"
    """The budget ended before the conflict was proven."""


class ConflictSet(NamedTuple):
    """Members that cannot be satisfied together, in order; empty without a proof."""

    members: tuple[Member, ...]
    proof: Proof
    in_time: bool = True
    """False if the deadline ended the proof."""


class _BudgetSpentError(Exception):
    """The steps, the subproblems or the time for proofs are used up."""

    def __init__(self, in_time: bool) -> None:
        super().__init__()
        self.in_time = in_time


def find_conflict(
    problem: AllocationProblem,
    budget: StepBudget = StepBudget(PROOF_STEPS),  # noqa: B008 - a value
    *,
    deadline: Deadline = no_deadline,
) -> ConflictSet | None:
    """The shortest irreducible set found within the budget, the first in the claims' order; None if all fits."""
    return _ConflictFinder(problem, budget.max_steps, deadline).find()


class _ConflictFinder:
    def __init__(self, problem: AllocationProblem, steps: int, deadline: Deadline) -> None:
        self._problem = problem
        self._all = members_of(problem)
        self._requests = tuple(each for each in self._all if not each.is_constraint)
        self._steps_left = steps
        self._subproblems_left = MAX_SUBPROBLEMS
        self._deadline = deadline
        self._meter = WorkMeter(deadline)
        self._known: dict[Members, bool] = {}
        self._errors = False
        """Whether some subproblem ended in an error. Fewer requests may reveal an error, so that a subset of a
        satisfiable set need not be satisfiable."""

    def find(self) -> ConflictSet | None:
        proven: tuple[Member, ...] | None = None
        try:
            for request in self._requests:
                if not self._can_be_satisfied(frozenset({request})):
                    return ConflictSet((request,), Proof.IRREDUCIBLE)
            if self._can_be_satisfied(frozenset(self._all)):
                return None
            for smaller in self._reductions():
                proven = smaller
        except _BudgetSpentError as spent:
            if proven is None:
                return ConflictSet((), Proof.UNPROVEN, spent.in_time)
            return ConflictSet(proven, Proof.REDUCIBLE, spent.in_time)
        assert proven is not None, "everything together cannot be satisfied"
        try:
            return ConflictSet(self._shortest(proven), Proof.IRREDUCIBLE)
        except _BudgetSpentError as spent:
            return ConflictSet(proven, Proof.IRREDUCIBLE, spent.in_time)

    def _reductions(self) -> Iterator[tuple[Member, ...]]:
        """Smaller and smaller sets that cannot be satisfied; the last one is irreducible."""
        core = self._all
        yield core
        changed = True
        while changed:
            changed = False
            # Remove the last member first, so that of several sets the first remains.
            for member in reversed(core):
                fewer = tuple(each for each in core if each != member)
                if not self._can_be_satisfied(frozenset(fewer)):
                    core = fewer
                    changed = True
                    yield core
            changed = changed and self._errors

    def _shortest(self, core: tuple[Member, ...]) -> tuple[Member, ...]:
        """The first of the shortest sets that cannot be satisfied, at most as long as `core`."""
        for size in range(2, len(core) + 1):
            for members in combinations(self._all, size):
                if members == core:
                    return core
                self._spend_subproblem()  # going through combinations takes time, too
                if self._is_connected(members) and not self._can_be_satisfied(frozenset(members)):
                    return members
        return core

    def _is_connected(self, members: tuple[Member, ...]) -> bool:
        """Whether every constraint covers a member request; otherwise it makes no difference."""
        return all(
            any(
                concerns(self._problem, each, request)
                for request in members
                if not request.is_constraint
            )
            for each in members
            if each.is_constraint
        )

    def _can_be_satisfied(self, members: Members) -> bool:
        known = self._known.get(members)
        if known is None:
            known = self._known[members] = (
                not self._errors
                and any(fits and members <= others for others, fits in self._known.items())
            ) or self._solved(members)
        return known

    def _solved(self, members: Members) -> bool:
        self._spend_subproblem()
        outcome = allocate(
            restricted(self._problem, members),
            StepBudget(self._steps_left),
            lambda: "share",
            deadline=self._deadline,
        )
        self._steps_left -= outcome.steps + 1
        match outcome:
            case Allocated():
                return True
            case Abandoned(limit=limit):
                raise _BudgetSpentError(in_time=limit is not Limit.TIME)
            case Failed():
                self._errors = True
        return False

    def _spend_subproblem(self) -> None:
        if self._subproblems_left <= 0 or self._steps_left <= 0:
            raise _BudgetSpentError(in_time=True)
        self._subproblems_left -= 1
        try:
            self._meter.spend(_SUBPROBLEM_WORK)
        except DeadlineExceededError:
            raise _BudgetSpentError(in_time=False) from None
