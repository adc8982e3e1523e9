"""Gang: pods of a group are bound when as many of them as the group needs have a node.

A pod names its group in the label `gang.example.com/name`, and the number of pods in `gang.example.com/min`. Each pod
waits at Permit with its node and devices until the others have theirs. When one gives up, all do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import WAITING_POD, Action, ClusterEvent, EventRegistration
from allot.scheduler.framework.handle import Handle
from allot.scheduler.framework.plugin_args import duration_seconds
from allot.scheduler.framework.plugins import PermitPlugin, PermitResult, ReservePlugin
from allot.scheduler.framework.status import SUCCESS, WAIT, Status
from allot.scheduler.framework.waiting_pods import WaitingPod
from allot.scheduler.plugins.registry import PluginSpec
from allot.scheduler.state.pods import PodInfo

NAME_LABEL = "gang.example.com/name"
MIN_LABEL = "gang.example.com/min"


class Gang(ReservePlugin, PermitPlugin):
    """Holds the pods of a group back until all of them can be bound."""

    name: ClassVar[str] = "Gang"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._waiting_pods = handle.waiting_pods
        self._cluster = handle.cluster
        self._timeout_seconds = duration_seconds(args.get("timeout", "60s"), "GangArgs.timeout")

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """A pod that was rejected is tried again when its labels change, or after five minutes."""
        return (EventRegistration(ClusterEvent(WAITING_POD, Action.UPDATE_POD_LABEL)),)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        for other in self._members(pod):
            other.reject(self.name, f"pod {pod.name} of group {_group(pod)} was rejected")

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> PermitResult:
        if not _group(pod):
            return PermitResult(SUCCESS)
        # Pods that wait are assumed, as this one is; the others are bound already.
        have = sum(_is_member(other, pod) for other in self._cluster.pods.values())
        if have < int(pod.labels.get(MIN_LABEL, "1")):
            return PermitResult(WAIT, self._timeout_seconds)
        for other in self._members(pod):
            other.allow(self.name)
        return PermitResult(SUCCESS)

    def _members(self, pod: PodInfo) -> Iterator[WaitingPod]:
        return (
            other
            for other in self._waiting_pods
            if _is_member(other.pod, pod) and other.pod.uid != pod.uid
        )


def _group(pod: PodInfo) -> str:
    return pod.labels.get(NAME_LABEL, "")


def _is_member(other: PodInfo, pod: PodInfo) -> bool:
    return bool(_group(pod)) and (other.namespace, _group(other)) == (pod.namespace, _group(pod))


GANG = PluginSpec(Gang, Gang)
"""What the entry point names."""
