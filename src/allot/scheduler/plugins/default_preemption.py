"""DefaultPreemption: evicts less important pods to make room for a more important one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from allot.client.cooperative import finish_with_pauses
from allot.client.steps import Steps, finish
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.fit_errors import no_node_fits
from allot.scheduler.framework.node_statuses import node_statuses
from allot.scheduler.framework.plugins import PostFilterPlugin, PostFilterResult
from allot.scheduler.framework.status import SUCCESS, Status, unschedulable
from allot.scheduler.plugins.preemption_victims import (
    NOT_HELPFUL,
    DisruptionBudget,
    DryRunFilters,
    Victims,
    best_candidate,
    find_candidates,
    why_not_eligible,
)
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.pods import PodInfo

DEFAULT_MIN_CANDIDATES_PERCENTAGE: Final = 10
DEFAULT_MIN_CANDIDATES: Final = 100

Evict = Callable[[PodInfo, PodInfo, str], Awaitable[None]]
"""`await evict(victim, pod, node_name)`: mark the victim as preempted, and delete it."""


class DefaultPreemption(PostFilterPlugin):
    """Selects victims, evicts them, and nominates their node.

    `pick_offset(n)` gives the index of the first node, below n; Kubernetes takes a random one.
    """

    name = "DefaultPreemption"

    def __init__(
        self,
        dry_run: DryRunFilters,
        budgets: Callable[[], Iterable[DisruptionBudget]],
        evict: Evict,
        pick_offset: Callable[[int], int],
        args: Mapping[str, Any] | None = None,
        attempted: Callable[[], None] = lambda: None,
    ) -> None:
        """`attempted` is called for each preemption attempt."""
        self._attempted = attempted
        self._what_if = dry_run
        self._budgets = budgets
        self._evict = evict
        self._pick_offset = pick_offset
        args = args or {}
        percentage = args.get("minCandidateNodesPercentage")
        absolute = args.get("minCandidateNodesAbsolute")
        self._percentage: int = (
            DEFAULT_MIN_CANDIDATES_PERCENTAGE if percentage is None else percentage
        )
        self._absolute: int = DEFAULT_MIN_CANDIDATES if absolute is None else absolute

    async def post_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        cluster: ClusterState,
        statuses: Mapping[str, Status],
    ) -> PostFilterResult:
        self._attempted()
        decision = await finish_with_pauses(self._decision(state, pod, cluster, statuses))
        if isinstance(decision, PostFilterResult):
            return decision
        for victim in decision.pods:
            await self._evict(victim, pod, decision.node_name)
        return PostFilterResult(SUCCESS, decision.node_name)

    def decide(
        self,
        state: CycleState,
        pod: PodInfo,
        cluster: ClusterState,
        statuses: Mapping[str, Status],
    ) -> Victims | PostFilterResult:
        """The pods to evict, or why preemption does not help."""
        return finish(self._decision(state, pod, cluster, statuses))

    def _decision(
        self,
        state: CycleState,
        pod: PodInfo,
        cluster: ClusterState,
        statuses: Mapping[str, Status],
    ) -> Steps[Victims | PostFilterResult]:
        nominated = pod.nominated_node_name
        refusal = why_not_eligible(pod, cluster.node(nominated), statuses.get(nominated))
        if refusal is not None:
            return PostFilterResult(unschedulable(f"preemption: {refusal}"))
        might_help = node_statuses(statuses).preemptable
        if not might_help:  # usual for pods that lack devices
            return _not_helpful(cluster)
        nodes = [node for node in cluster.nodes if node.name in might_help]
        candidates = yield from find_candidates(
            state,
            pod,
            nodes,
            self._what_if,
            tuple(self._budgets()),
            offset=self._pick_offset(len(nodes)) if nodes else 0,
            enough=self._enough(len(nodes)),
        )
        if candidates.victims:
            return best_candidate(candidates.victims)
        if not candidates.statuses:
            return _not_helpful(cluster)
        shown = [candidates.statuses.get(node.name, NOT_HELPFUL) for node in cluster.nodes]
        message = no_node_fits(len(cluster), shown)
        return PostFilterResult(unschedulable(f"preemption: {message}"), nominated_node="")

    def _enough(self, number_of_nodes: int) -> int:
        """How many candidate nodes end the search."""
        share = number_of_nodes * self._percentage // 100
        return min(max(share, self._absolute), number_of_nodes)


def _not_helpful(cluster: ClusterState) -> PostFilterResult:
    """Preemption does not help on any node."""
    number = len(cluster)
    counted = f"{number} {NOT_HELPFUL.message}" if number else ""
    message = no_node_fits(number, (), pre_filter_message=counted)
    return PostFilterResult(unschedulable(f"preemption: {message}"), nominated_node="")
