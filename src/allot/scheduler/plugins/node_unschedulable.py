"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from __future__ import annotations

from typing import Final

from allot.api.taints import NO_SCHEDULE, Taint, is_tolerated
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import (
    NODE,
    WAITING_POD,
    Action,
    ClusterEvent,
    EventRegistration,
    Hint,
)
from allot.scheduler.framework.plugins import (
    PRE_FILTER_SKIP,
    PRE_FILTER_SUCCESS,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
)
from allot.scheduler.framework.status import SUCCESS, Status, unresolvable
from allot.scheduler.state.cluster import ClusterState, Trait
from allot.scheduler.state.nodes import NodeFacts, NodeInfo
from allot.scheduler.state.pods import PodInfo

UNSCHEDULABLE_TAINT: Final = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)
CORDONED: Final = unresolvable("node(s) were unschedulable")


class NodeUnschedulable(PreFilterPlugin, FilterPlugin):
    """Filters by `spec.unschedulable` of nodes."""

    name = "NodeUnschedulable"
    may_reject_with = frozenset({Trait.UNSCHEDULABLE_NODES})

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        return PRE_FILTER_SUCCESS if cluster.unschedulable_nodes else PRE_FILTER_SKIP

    def may_reject(self, pod: PodInfo) -> bool:
        return False

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        if not node.is_unschedulable or is_tolerated(UNSCHEDULABLE_TAINT, pod.tolerations):
            return SUCCESS
        return CORDONED

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        return (
            EventRegistration(
                ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_TAINT), _node_admits
            ),
            EventRegistration(ClusterEvent(WAITING_POD, Action.UPDATE_POD_TOLERATIONS)),
        )


def _node_admits(_pod: PodInfo, old: NodeFacts | None, new: NodeFacts | None) -> Hint:
    if new is None or new.is_unschedulable:
        return Hint.SKIP
    return Hint.QUEUE if old is None or old.is_unschedulable else Hint.SKIP
