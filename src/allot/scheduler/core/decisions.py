"""Decisions of a scheduling cycle: a node is chosen, no node fits, or a plugin failed."""

from __future__ import annotations

from typing import NamedTuple

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.fit_errors import NO_NODES, no_node_fits
from allot.scheduler.framework.node_statuses import NodeStatuses
from allot.scheduler.framework.status import Status


class Chosen(NamedTuple):
    """The chosen node, and the cycle state."""

    node_name: str
    state: CycleState
    evaluated: int
    feasible: int


class NoNode(NamedTuple):
    """No node fits. `rejected_by` are the plugins whose events can help."""

    state: CycleState
    statuses: NodeStatuses
    pre_filter_message: str
    rejected_by: frozenset[str]
    pending_on: frozenset[str]

    @property
    def is_pending(self) -> bool:
        """Whether everything that is missing is under way."""
        return bool(self.pending_on) and self.pending_on == self.rejected_by

    def message(self, node_count: int, post_filter_message: str = "") -> str:
        """What the pod's condition says, in a cluster with so many nodes."""
        if not node_count:
            return NO_NODES
        return no_node_fits(
            node_count,
            (),
            pre_filter_message=self.pre_filter_message or self.statuses.reasons,
            post_filter_message=post_filter_message,
        )


class CycleError(NamedTuple):
    """A plugin failed, so it is unknown whether the pod fits."""

    state: CycleState
    status: Status


Decision = Chosen | NoNode | CycleError
