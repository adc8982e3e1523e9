"""NodeAffinity: node selector and node affinity of the pod, with the profile's added affinity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from allot.api.selectors import NodeSelection, node_selection
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import NODE, Action, ClusterEvent, EventRegistration, Hint
from allot.scheduler.framework.plugins import (
    PRE_FILTER_SKIP,
    PRE_FILTER_SUCCESS,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from allot.scheduler.framework.scores import scale_to_max
from allot.scheduler.framework.status import SKIP, SUCCESS, Status, unresolvable
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeFacts, NodeInfo
from allot.scheduler.state.pods import PodInfo, read_preferred_nodes

NOT_MATCHED: Final = unresolvable("node(s) didn't match Pod's node affinity/selector")
NOT_ENFORCED: Final = unresolvable("node(s) didn't match scheduler-enforced node affinity")
CONFLICT: Final = unresolvable("pod affinity terms conflict")


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters by required terms, scores by preferred ones."""

    name = "NodeAffinity"
    normalizes_by_value = True

    def __init__(self, args: Mapping[str, Any] | None = None) -> None:
        added = (args or {}).get("addedAffinity") or {}
        self._added_required = node_selection(
            added.get("requiredDuringSchedulingIgnoredDuringExecution")
        )
        self._added_preferred = read_preferred_nodes(
            added.get("preferredDuringSchedulingIgnoredDuringExecution")
        )

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        required = pod.required_nodes
        if required is None:
            return PRE_FILTER_SUCCESS if self.may_reject(pod) else PRE_FILTER_SKIP
        names = pinned_names(required)
        if names is None:
            return PRE_FILTER_SUCCESS
        return PreFilterResult(SUCCESS if names else CONFLICT, names)

    def may_reject(self, pod: PodInfo) -> bool:
        return (
            pod.required_nodes is not None
            or pod.node_selector is not None
            or self._added_required is not None
        )

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        added = self._added_required
        if added is not None and not added.matches(node.name, node.labels):
            return NOT_ENFORCED
        return SUCCESS if pod.accepts_node(node.name, node.labels) else NOT_MATCHED

    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        return SUCCESS if self.may_rank(pod) else SKIP

    def may_rank(self, pod: PodInfo) -> bool:
        return bool(pod.preferred_nodes or self._added_preferred)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """The sum of the weights of all preferred terms that the node matches."""
        total = 0
        for term, weight in self._added_preferred:
            if term.matches(node.name, node.labels):
                total += weight
        for term, weight in pod.preferred_nodes:
            if term.matches(node.name, node.labels):
                total += weight
        return total

    def normalize(
        self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo], scores: list[int]
    ) -> None:
        scale_to_max(scores)

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        changed = ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return (EventRegistration(changed, self._node_admits),)

    def _node_admits(self, pod: PodInfo, old: NodeFacts | None, new: NodeFacts | None) -> Hint:
        if new is None or not self._admits(pod, new):
            return Hint.SKIP
        return Hint.SKIP if old is not None and self._admits(pod, old) else Hint.QUEUE

    def _admits(self, pod: PodInfo, facts: NodeFacts) -> bool:
        added = self._added_required
        if added is not None and not added.matches(facts.name, facts.labels):
            return False
        return pod.accepts_node(facts.name, facts.labels)


def pinned_names(selection: NodeSelection) -> frozenset[str] | None:
    """The only nodes that can match, if every term names nodes; None if some term does not."""
    names: frozenset[str] = frozenset()
    for term in selection.terms:
        pinned = term.pinned_names
        if pinned is None:
            return None
        names |= pinned
    return names if selection.terms else None
