"""Why a pod is pending: the reason that helps most, for its condition, and everything, for those who ask."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from allot.allocation import Explanation
from allot.scheduler.cycle import Chosen, CycleError, NoNode, SchedulingCycle
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.fit_errors import NO_NODES, no_node_fits
from allot.scheduler.plugins.dynamic_resources.plugin import NAME, DynamicResources
from allot.scheduler.profiles import Profile
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

MAX_EXPLAINED_NODES: Final = 3
"""For the condition, so many nodes are looked at closely. It is written at every attempt."""
MAX_REASON: Final = 400


class NodeExplanation(NamedTuple):
    """Why a node does not take the pod."""

    node: str
    plugin: str
    reasons: tuple[str, ...]
    details: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "plugin": self.plugin,
            "reasons": list(self.reasons),
            "details": list(self.details),
        }


class PodExplanation(NamedTuple):
    """What would happen if the pod were tried now."""

    pod: str
    verdict: str
    nodes: tuple[NodeExplanation, ...] = ()

    def as_json(self) -> dict[str, Any]:
        nodes = [node.as_json() for node in self.nodes]
        return {"pod": self.pod, "verdict": self.verdict, "nodes": nodes}


class Explainer:
    """Explains decisions. Nothing is changed by it."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster

    def useful_reason(self, profile: Profile, decision: NoNode) -> str:
        """What keeps the devices away on the node that comes nearest; empty if devices are not the trouble."""
        found: list[tuple[int, Explanation]] = []
        for name, status in decision.statuses.items():
            if status.plugin != NAME or decision.pre_filter_message:
                continue
            explanation = self._explained(profile, decision.state, name)
            if explanation is not None:
                progress = sum(report.found for report in explanation.requests)
                found.append((progress, explanation))
            if len(found) == MAX_EXPLAINED_NODES:
                break
        if not found:
            return ""
        _, nearest = max(found, key=lambda pair: pair[0])
        return _shortened(_sentence(nearest))

    def explain(self, profile: Profile, pod: PodInfo) -> PodExplanation:
        """All there is to say about a pod, node by node."""
        decision = SchedulingCycle(profile, self._cluster).decide(pod)
        name = str(pod.key)
        match decision:
            case Chosen(node_name):
                return PodExplanation(name, f"it fits on node {node_name}")
            case CycleError(_, status):
                return PodExplanation(name, status.message)
        total = len(self._cluster)
        verdict = NO_NODES
        if total:
            verdict = no_node_fits(
                total,
                decision.statuses.values(),
                pre_filter_message=decision.pre_filter_message,
            )
        nodes = []
        for node_name, status in sorted(decision.statuses.items()):
            details: tuple[str, ...] = ()
            if status.plugin == NAME and not decision.pre_filter_message:
                explanation = self._explained(profile, decision.state, node_name)
                details = tuple(explanation.lines()) if explanation is not None else ()
            nodes.append(NodeExplanation(node_name, status.plugin, status.reasons, details))
        return PodExplanation(name, verdict, tuple(nodes))

    def _explained(self, profile: Profile, state: CycleState, node_name: str) -> Explanation | None:
        plugin = profile.plugin(NAME)
        node: NodeInfo | None = self._cluster.node(node_name)
        if not isinstance(plugin, DynamicResources) or node is None:
            return None
        return plugin.explain(state, node)


def _sentence(explanation: Explanation) -> str:
    """The request that lacks most, and the reason most devices were refused for."""
    where = f"On node {explanation.node}: "
    if explanation.error:
        return f"{where}{explanation.error}."
    lacking = [report for report in explanation.requests if report.found < report.wanted]
    if not lacking:
        return f"{where}{explanation.pools[0]}." if explanation.pools else ""
    report = next((each for each in lacking if each.was_tried), lacking[0])
    if not report.refusals:
        pools = f" ({explanation.pools[0]})" if explanation.pools else ""
        return f"{where}{report}: there are no devices to choose from{pools}."
    refusal = max(report.refusals, key=lambda each: len(each.devices))
    return f"{where}{report}; {refusal}."


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_REASON else f"{text[: MAX_REASON - 4]} ..."
