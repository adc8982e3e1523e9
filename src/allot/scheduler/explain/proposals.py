"""Proposals: single changes of devices, selectors or the pod with which a node would fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from allot.allocation import StepBudget, Wording, explain, proposals
from allot.allocation.explain.proposals import Proposal
from allot.deadline import DeadlineExceededError
from allot.scheduler.core.decisions import Chosen, NoNode
from allot.scheduler.core.scheduling_cycle import SchedulingCycle
from allot.scheduler.explain.effort import Effort, IsOver, deadline_of
from allot.scheduler.explain.errors_elsewhere import fails_elsewhere
from allot.scheduler.explain.explanations import Proposed
from allot.scheduler.explain.guard_proposals import guard_proposals
from allot.scheduler.explain.node_details import details
from allot.scheduler.explain.node_groups import NodeGroup
from allot.scheduler.explain.pod_changes import WithoutNodeSelectors, changed_pods, pod_change_text
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME
from allot.scheduler.plugins.dynamic_resources.claim_filter import ClaimFilter
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

MAX_TRIED_ALIKE: Final = 5
"""Of a group of equal nodes, so many are tried until a proposal is found."""
PROPOSAL_STEPS: Final = 2_000
"""The step budget of each proposal: good ones are found in few steps."""
CHANGEABLE: Final = frozenset({"NodeAffinity", "TaintToleration"})
"""Plugins whose rejections depend on requirements of the pod that can be changed."""
NOT_ALL_TRIED: Final = "Not everything that might help was tried."
NO_CHANGE: Final = "No single change was found that would make it fit."


class ProposalFinder:
    """Finds changes that would help a pod that fits on no node."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster

    def for_devices(
        self,
        profile: Profile,
        state: CycleState,
        pod: PodInfo,
        groups: Sequence[NodeGroup],
        effort: Effort,
    ) -> tuple[tuple[Proposed, ...], tuple[str, ...]]:
        """Changes that would help on the nearest nodes, and notes about the search for them."""
        plugin = profile.plugin(NAME)
        lacking = [
            group for group in groups if group.nodes[0].requests and not group.nodes[0].besides
        ]
        if not isinstance(plugin, ClaimFilter) or not lacking:
            return (), ()
        found: list[Proposed] = []
        is_over = effort.stopwatch()
        others = self._cluster.nodes[: effort.nodes]

        def is_refused(node: NodeInfo) -> bool:
            return any(True for _ in other_rejections(profile, state, pod, node))

        def ends_in_error(proposal: Proposal) -> bool:
            deadline = deadline_of(is_over)
            return fails_elsewhere(plugin, state, others, proposal, is_refused, deadline)

        for group in lacking[: effort.proposal_nodes]:
            # Nodes with equal reasons may need different changes.
            for member in group.nodes[:MAX_TRIED_ALIKE]:
                helpful = self._on_node(plugin, state, member.node, ends_in_error, is_over)
                found += helpful
                if helpful:
                    break
        if is_over():
            return tuple(found), (NOT_ALL_TRIED,)
        return tuple(found), () if found else (NO_CHANGE,)

    def _on_node(
        self,
        plugin: ClaimFilter,
        state: CycleState,
        name: str,
        ends_in_error: Callable[[Proposal], bool],
        is_over: IsOver,
    ) -> list[Proposed]:
        node = self._cluster.node(name)
        allocation_problem = plugin.allocation_problem(state, node) if node is not None else None
        if allocation_problem is None:
            return []
        deadline = deadline_of(is_over)
        explanation = explain(allocation_problem, deadline=deadline)
        helpful = proposals(
            allocation_problem,
            StepBudget(PROPOSAL_STEPS),
            explanation=explanation,
            deadline=deadline,
        )
        wording = Wording()
        found: list[Proposed] = []
        with suppress(DeadlineExceededError):  # what was not checked is not proposed
            found.extend(
                Proposed(name, wording.change(each.change), each.change)
                for each in helpful
                if not ends_in_error(each)
            )
        return found

    def guards(
        self,
        profile: Profile,
        state: CycleState,
        pod: PodInfo,
        failed: Sequence[NodeGroup],
        effort: Effort,
    ) -> tuple[Proposed, ...]:
        """Guards that keep selectors from failing, with which a node fits."""
        plugin = profile.plugin(NAME)
        if not isinstance(plugin, ClaimFilter):
            return ()
        first = {group.nodes[0].node: None for group in failed}
        others = {node.name: None for node in self._cluster.nodes[: effort.nodes]}
        nodes = [node for name in first | others if (node := self._cluster.node(name)) is not None]

        def is_refused(node: NodeInfo) -> bool:
            return any(True for _ in other_rejections(profile, state, pod, node))

        deadline = deadline_of(effort.stopwatch())
        return tuple(guard_proposals(plugin, state, nodes, is_refused, deadline)) if failed else ()

    def pod_changes(
        self, profile: Profile, pod: PodInfo, decision: NoNode, effort: Effort
    ) -> tuple[Proposed, ...]:
        """Changes of where the pod may go with which a node fits. Each is decided by a scheduling cycle."""
        if CHANGEABLE.isdisjoint(status.plugin for status in decision.statuses.values()):
            return ()
        found: dict[object, Proposed] = {}
        is_over = effort.stopwatch()
        for about, change, changed in changed_pods(pod, self._cluster.nodes):
            if about in found or is_over():
                continue
            if isinstance(change, WithoutNodeSelectors) and found:
                continue  # less is enough
            answer = SchedulingCycle(profile, self._cluster).decide(changed)
            if isinstance(answer, Chosen):
                found[about] = Proposed(answer.node_name, pod_change_text(change), change)
        return tuple(found.values())


def other_rejections(
    profile: Profile, state: CycleState, pod: PodInfo, node: NodeInfo
) -> Iterator[str]:
    """Why other plugins than DynamicResources reject a node."""
    for plugin in profile.filter:
        if plugin.name == NAME or plugin.name in state.skipped_filters:
            continue
        status = plugin.filter(state, pod, node)
        if not status.is_success:
            values = details(plugin, state, pod, node)
            yield "; ".join((status.message, *values))


def advice(proposals: Sequence[Proposed], node: str = "") -> str:
    """The first change that would help, as the last sentence of a verdict; may be empty.

    The node on which it helps is named if the verdict is about another one, which is `node`.
    """
    if not proposals:
        return ""
    first = proposals[0]
    elsewhere = f" (on node {first.node})" if node and first.node not in ("", node) else ""
    return f" What would help: {first.change}{elsewhere}."
