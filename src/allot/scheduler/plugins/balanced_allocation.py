"""NodeResourcesBalancedAllocation: prefers nodes whose resources would be used evenly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.plugins import PreScorePlugin, ScorePlugin
from allot.scheduler.framework.scores import MAX_SCORE
from allot.scheduler.framework.status import SKIP, SUCCESS, Status
from allot.scheduler.plugins.resource_scoring import allocatable_and_used, read_weights
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """Scores by the deviation between the utilizations of resources."""

    name = "NodeResourcesBalancedAllocation"

    def __init__(self, args: Mapping[str, Any] | None = None) -> None:
        weights = read_weights((args or {}).get("resources"))
        self._resources = tuple(one.name for one in weights)

    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        return SUCCESS if self.may_rank(pod) else SKIP

    def may_rank(self, pod: PodInfo) -> bool:
        return any(pod.requests.amount(name) for name in self._resources)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        fractions = []
        for name in self._resources:
            capacity, used = allocatable_and_used(pod, node, name, exact=True)
            if capacity:
                fractions.append(min(used / capacity, 1.0))
        return int((1 - _deviation(fractions)) * MAX_SCORE)


def _deviation(fractions: list[float]) -> float:
    if len(fractions) < 2:
        return 0.0
    if len(fractions) == 2:
        return abs(fractions[0] - fractions[1]) / 2
    mean = sum(fractions) / len(fractions)
    return math.sqrt(sum((one - mean) ** 2 for one in fractions) / len(fractions))
