"""Whether a change that helps on one node ends in an error on another, for which the pod would get no node at all."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace as replace_problem
from typing import Final

from allot.allocation import Abandoned, Failed, StepBudget, allocate
from allot.allocation.explain.changes import EnableFeature
from allot.allocation.explain.proposals import Proposal
from allot.allocation.problem import Limit
from allot.deadline import Deadline, DeadlineExceededError
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.plugins.dynamic_resources.claim_filter import ClaimFilter
from allot.scheduler.state.nodes import NodeInfo

CHECK_STEPS: Final = 2_000


def fails_elsewhere(
    claim_filter: ClaimFilter,
    state: CycleState,
    nodes: Iterable[NodeInfo],
    proposal: Proposal,
    is_refused: Callable[[NodeInfo], bool],
    deadline: Deadline,
) -> bool:
    """Whether the claims, with the change, end in an error on one of the nodes.

    `is_refused` says whether a node rejects the pod for other reasons than its devices, so that they are not looked
    at. Raises `DeadlineExceededError`.
    """
    if isinstance(proposal.change, EnableFeature):
        return False
    changed = proposal.problem
    seen: set[Hashable] = set()
    for node in nodes:
        node_class = claim_filter.node_equivalence_class(state, node)
        if node.name == changed.node.name or node_class in seen or is_refused(node):
            continue
        if node_class is not None:
            seen.add(node_class)
        problem = claim_filter.allocation_problem(state, node)
        if problem is None:
            continue
        tried = replace_problem(
            problem, claims=changed.claims, classes=changed.classes, ledger=changed.ledger
        )
        outcome = allocate(tried, StepBudget(CHECK_STEPS), lambda: "share", deadline=deadline)
        if isinstance(outcome, Failed):
            return True
        if isinstance(outcome, Abandoned) and outcome.limit is Limit.TIME:
            raise DeadlineExceededError
    return False
