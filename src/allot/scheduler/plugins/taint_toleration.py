"""TaintToleration: keeps pods off nodes with taints they do not tolerate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from allot.api.taints import (
    PREFER_NO_SCHEDULE,
    Taint,
    Toleration,
    first_untolerated,
    is_tolerated,
)
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
    PreScorePlugin,
    ScorePlugin,
)
from allot.scheduler.framework.scores import scale_to_max
from allot.scheduler.framework.status import SKIP, SUCCESS, Status, unresolvable
from allot.scheduler.state.cluster import ClusterState, Trait
from allot.scheduler.state.nodes import NodeFacts, NodeInfo
from allot.scheduler.state.pods import PodInfo

UNTOLERATED: Final = unresolvable("node(s) had untolerated taint(s)")


class TaintToleration(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters by NoSchedule and NoExecute taints, scores by PreferNoSchedule ones."""

    name = "TaintToleration"
    normalizes_by_value = True
    may_reject_with = frozenset({Trait.BLOCKING_TAINTS})
    may_rank_with = frozenset({Trait.SOFT_TAINTS})

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        return PRE_FILTER_SUCCESS if cluster.nodes_with_blocking_taints else PRE_FILTER_SKIP

    def may_reject(self, pod: PodInfo) -> bool:
        return False

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        taints = node.blocking_taints
        if not taints or first_untolerated(taints, pod.tolerations) is None:
            return SUCCESS
        return UNTOLERATED

    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        return SUCCESS if cluster.nodes_with_soft_taints else SKIP

    def may_rank(self, pod: PodInfo) -> bool:
        return False

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """The number of PreferNoSchedule taints that the pod does not tolerate; fewer are better."""
        return untolerated_soft_taints(node.soft_taints, pod.tolerations)

    def normalize(
        self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo], scores: list[int]
    ) -> None:
        scale_to_max(scores, reverse=True)

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        return (
            EventRegistration(
                ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_TAINT), _node_admits
            ),
            EventRegistration(ClusterEvent(WAITING_POD, Action.UPDATE_POD_TOLERATIONS)),
        )


def untolerated_soft_taints(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int:
    if not taints:
        return 0
    fitting = [one for one in tolerations if one.effect in ("", PREFER_NO_SCHEDULE)]
    return sum(not is_tolerated(taint, fitting) for taint in taints)


def blocks(facts: NodeFacts, pod: PodInfo) -> bool:
    """Whether the node has a taint that the pod does not tolerate."""
    taints = [taint for taint in facts.taints if taint.effect in ("NoSchedule", "NoExecute")]
    return first_untolerated(taints, pod.tolerations) is not None


def _node_admits(pod: PodInfo, old: NodeFacts | None, new: NodeFacts | None) -> Hint:
    if new is None or blocks(new, pod):
        return Hint.SKIP
    return Hint.QUEUE if old is None or blocks(old, pod) else Hint.SKIP
