"""Dry runs: the filters of a profile on a node as it would be with other pods."""

from __future__ import annotations

from collections.abc import Iterable

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import SUCCESS, Status
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo


class DryRunFilters:
    """Runs the filters of one profile. The profile is set once its plugins exist."""

    profile: Profile

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Update the cycle state as if `other` ran on `node`."""
        for plugin in self.profile.pre_filter:
            if plugin.name not in state.skipped_filters:
                plugin.add_pod(state, pod, other, node)

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Update the cycle state as if `other` did not run on `node`."""
        for plugin in self.profile.pre_filter:
            if plugin.name not in state.skipped_filters:
                plugin.remove_pod(state, pod, other, node)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """The filters' status for the node, with and without the pods that are nominated to it."""
        others = self._cluster.nominations.before(pod, node.name)
        if others:
            added_state, added_node = with_added_pods(self.profile, state, pod, node, others)
            status = self._filter(added_state, pod, added_node)
            if not status.is_success:
                return status
        return self._filter(state, pod, node)

    def _filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        for plugin in self.profile.filter:
            if plugin.name not in state.skipped_filters:
                status = plugin.filter(state, pod, node)
                if not status.is_success:
                    return status.by(plugin.name)
        return SUCCESS


def with_added_pods(
    profile: Profile, state: CycleState, pod: PodInfo, node: NodeInfo, others: Iterable[PodInfo]
) -> tuple[CycleState, NodeInfo]:
    """Copies of the cycle state and the node, as if `others` ran on the node too."""
    state, node = state.clone(), node.clone()
    for other in others:
        node.add_pod(other.assigned_to(node.name))
        for plugin in profile.pre_filter:
            if plugin.name not in state.skipped_filters:
                plugin.add_pod(state, pod, other, node)
    return state, node
