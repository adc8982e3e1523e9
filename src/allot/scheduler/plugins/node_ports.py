"""NodePorts: a host port can be used by one pod only."""

from __future__ import annotations

from typing import Final

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import (
    ASSIGNED_POD,
    NODE,
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
from allot.scheduler.framework.status import SUCCESS, Status, unschedulable
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

TAKEN: Final = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts(PreFilterPlugin, FilterPlugin):
    """Filters by `hostPort`."""

    name = "NodePorts"

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        return PRE_FILTER_SUCCESS if pod.host_ports else PRE_FILTER_SKIP

    def may_reject(self, pod: PodInfo) -> bool:
        return bool(pod.host_ports)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return TAKEN if node.has_port_conflict(pod.host_ports) else SUCCESS

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        return (
            EventRegistration(ClusterEvent(ASSIGNED_POD, Action.DELETE), _port_is_free),
            EventRegistration(ClusterEvent(NODE, Action.ADD)),
        )


def _port_is_free(pod: PodInfo, old: PodInfo | None, _new: PodInfo | None) -> Hint:
    """A deleted pod helps only if it used one of the pod's host ports."""
    if old is None or not old.node_name:
        return Hint.SKIP
    freed = {(port.protocol, port.port) for port in old.host_ports}
    wanted = any((port.protocol, port.port) in freed for port in pod.host_ports)
    return Hint.QUEUE if wanted else Hint.SKIP
