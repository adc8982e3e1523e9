"""NodeName: a pod that names its node fits nowhere else."""

from __future__ import annotations

from typing import Final

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import NODE, Action, ClusterEvent, EventRegistration
from allot.scheduler.framework.plugins import (
    PRE_FILTER_SKIP,
    PRE_FILTER_SUCCESS,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
)
from allot.scheduler.framework.status import SUCCESS, Status, unresolvable
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

OTHER_NODE: Final = unresolvable("node(s) didn't match the requested node name")


class NodeName(PreFilterPlugin, FilterPlugin):
    """Filters by `spec.nodeName`."""

    name = "NodeName"

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        return PRE_FILTER_SUCCESS if pod.node_name else PRE_FILTER_SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if not pod.node_name or pod.node_name == node.name else OTHER_NODE

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        return (EventRegistration(ClusterEvent(NODE, Action.ADD)),)
