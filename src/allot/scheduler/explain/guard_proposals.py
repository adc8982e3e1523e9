"""Guards for selectors that fail on some node, because of which a pod is not scheduled at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as replace_problem
from typing import Final

from allot.allocation import Allocated, Failed, StepBudget, Wording, allocate, explain
from allot.allocation.explain.guards import guarded_problems
from allot.allocation.problem import AllocationProblem
from allot.deadline import Deadline, DeadlineExceededError
from allot.scheduler.explain.explanations import Proposed
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.plugins.dynamic_resources.claim_filter import ClaimFilter
from allot.scheduler.state.nodes import NodeInfo

GUARD_STEPS: Final = 2_000


def guard_proposals(
    claim_filter: ClaimFilter,
    state: CycleState,
    nodes: Sequence[NodeInfo],
    is_refused: Callable[[NodeInfo], bool],
    deadline: Deadline,
) -> Iterator[Proposed]:
    """Each guard with which no selector fails and a node fits, as far as there is time.

    The first of `nodes` is one with an error. `is_refused` says whether a node does not take the pod for other
    reasons than its devices.
    """
    allocation_problem = claim_filter.allocation_problem(state, nodes[0]) if nodes else None
    if allocation_problem is None:
        return
    try:
        explanation = explain(allocation_problem, deadline=deadline)
        for change, guarded in guarded_problems(allocation_problem, explanation):
            taking = _taking(claim_filter, state, nodes, guarded, deadline)
            node = next((each for each in taking if not is_refused(each)), None)
            if node is not None:
                yield Proposed(node.name, Wording().change(change), change)
    except DeadlineExceededError:
        return


def _taking(
    claim_filter: ClaimFilter,
    state: CycleState,
    nodes: Sequence[NodeInfo],
    guarded: AllocationProblem,
    deadline: Deadline,
) -> list[NodeInfo]:
    """The nodes with devices for the claims with a guard; empty if a selector fails on any node."""
    found = []
    for node in nodes:
        problem = claim_filter.allocation_problem(state, node)
        if problem is None:
            continue
        changed = replace_problem(problem, claims=guarded.claims, classes=guarded.classes)
        outcome = allocate(changed, StepBudget(GUARD_STEPS), lambda: "share", deadline=deadline)
        if isinstance(outcome, Failed):
            return []
        if isinstance(outcome, Allocated):
            found.append(node)
    return found
