"""NodeDeclaredFeatures: pods that need a feature of the node run only on nodes that declare it (KEP-5328)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import chain
from typing import Any, ClassVar, Final

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import NODE, Action, ClusterEvent, EventRegistration, Hint
from allot.scheduler.framework.plugins import (
    PRE_FILTER_SKIP,
    PRE_FILTER_SUCCESS,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
)
from allot.scheduler.framework.status import SUCCESS, Status, unresolvable
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeFacts, NodeInfo
from allot.scheduler.state.pods import PodInfo

MISSING: Final = "node(s) didn't match Pod's required features"

Spec = Mapping[str, Any]


def _restarts_all_containers(spec: Spec) -> bool:
    containers = chain(spec.get("initContainers") or (), spec.get("containers") or ())
    for container in containers:
        for rule in container.get("restartPolicyRules") or ():
            if rule.get("action") == "RestartAllContainers":
                return True
    return False


def _has_users_of_its_own_on_the_host_network(spec: Spec) -> bool:
    return bool(spec.get("hostNetwork")) and spec.get("hostUsers") is False


NEEDS: Final[Mapping[str, Callable[[Spec], bool]]] = {
    "RestartAllContainersOnContainerExits": _restarts_all_containers,
    "UserNamespacesHostNetworkSupport": _has_users_of_its_own_on_the_host_network,
}
"""By feature: which pods need it. Features that all supported nodes have are not listed."""


def needed_features(pod: PodInfo) -> frozenset[str]:
    """The features that a node needs to run the pod."""
    spec: Spec = pod.pod.data.get("spec") or {}
    return frozenset(name for name, is_needed in NEEDS.items() if is_needed(spec))


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin):
    """Compares the pod's needs with `status.declaredFeatures` of nodes."""

    name: ClassVar[str] = "NodeDeclaredFeatures"
    filters_locally: ClassVar[bool] = False

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        needed = needed_features(pod)
        if not needed:
            return PRE_FILTER_SKIP
        state[self.name] = needed
        return PRE_FILTER_SUCCESS

    def may_reject(self, pod: PodInfo) -> bool:
        return bool(needed_features(pod))

    def equivalence_key(self, state: CycleState, pod: PodInfo) -> Hashable:
        needed: frozenset[str] = state[self.name]
        return needed

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        needed: frozenset[str] = state[self.name]
        declared = node.facts.declared_features if node.facts is not None else frozenset()
        return SUCCESS if needed <= declared else unresolvable(MISSING)

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        changes = Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURES
        return (EventRegistration(ClusterEvent(NODE, changes), _node_hint),)


def _node_hint(pod: PodInfo, _: NodeFacts | None, node: NodeFacts) -> Hint:
    return Hint.QUEUE if needed_features(pod) <= node.declared_features else Hint.SKIP
