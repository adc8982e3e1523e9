"""Why a pod is pending, in detail and on request. `failure_reasons` has the short form for conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.allocation.explain.amounts import counted
from allot.allocation.explain.phrases import sentence
from allot.api.base import replace
from allot.api.claims import AllocationResult
from allot.scheduler.core.decisions import Chosen, CycleError, NoNode
from allot.scheduler.core.scheduling_cycle import SchedulingCycle
from allot.scheduler.explain.claim_summaries import summary_of
from allot.scheduler.explain.device_explainer import DeviceExplainer, with_devices
from allot.scheduler.explain.effort import Effort
from allot.scheduler.explain.explanations import (
    ClaimSummary,
    NodeExplanation,
    PodExplanation,
    PodState,
)
from allot.scheduler.explain.node_details import details
from allot.scheduler.explain.node_groups import alike, nearest
from allot.scheduler.explain.proposals import (
    NO_CHANGE,
    NOT_ALL_TRIED,
    ProposalFinder,
    advice,
    other_rejections,
)
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.deadlines import UNLIMITED, DecisionDeadline
from allot.scheduler.framework.fit_errors import count_reasons
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import Status
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME
from allot.scheduler.plugins.dynamic_resources.claim_filter import ClaimFilter
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

NOT_PROVEN: Final = (
    "it is not proven which requests cannot be satisfied together: the time for that ended"
)


class PodExplainer:
    """Explains decisions without changing state."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._proposals = ProposalFinder(cluster)

    def explain(
        self,
        profile: Profile,
        pod: PodInfo,
        effort: Effort = Effort(),  # noqa: B008 - a value
    ) -> PodExplanation:
        """The result of a scheduling cycle now: the node and the devices, or why no node fits."""
        seconds = effort.decision_seconds
        time = DecisionDeadline(seconds, 0.0, len(self._cluster)) if seconds else UNLIMITED
        decision = SchedulingCycle(profile, self._cluster).decide(pod, time)
        known = PodExplanation(pod=str(pod.key), scheduler_name=profile.scheduler_name)
        match decision:
            case Chosen():
                return self._placed(known, profile, pod, decision)
            case CycleError():
                return self._undecided(known, profile, pod, decision, effort)
        return self._unplaced(known, profile, pod, decision, effort)

    def explain_node(
        self,
        profile: Profile,
        state: CycleState,
        pod: PodInfo,
        node: NodeInfo,
        status: Status,
        effort: Effort = Effort(),  # noqa: B008 - a value
    ) -> NodeExplanation:
        """Why a node rejects a pod, with values; `state` is that of the pod's cycle."""
        found = NodeExplanation(node=node.name, plugin=status.plugin, reasons=status.reasons)
        device_explainer = DeviceExplainer(profile, state, effort.stopwatch())
        return self._explained_node(found, profile, pod, node, device_explainer) or found

    # --- a node fits ---

    def _placed(
        self, known: PodExplanation, profile: Profile, pod: PodInfo, chosen: Chosen
    ) -> PodExplanation:
        name = chosen.node_name
        others = f" ({chosen.feasible} nodes would take it)" if chosen.feasible > 1 else ""
        return replace(
            known,
            state=PodState.FITS,
            verdict=f"Pod {pod.key} fits on node {name}{others}.",
            node=name,
            claims=tuple(self._outlook(profile, chosen.state, name)),
        )

    def _outlook(self, profile: Profile, state: CycleState, name: str) -> Iterator[ClaimSummary]:
        """The claims with the devices they would get."""
        plugin, node = profile.plugin(NAME), self._cluster.node(name)
        if not isinstance(plugin, ClaimFilter) or node is None:
            return
        allocation_problem = plugin.allocation_problem(state, node)
        if allocation_problem is None:
            return
        results: tuple[AllocationResult, ...] = plugin.allocate_on(
            allocation_problem.claims, allocation_problem.node
        ).results
        for claim, result in zip(allocation_problem.claims, results, strict=False):
            yield summary_of(claim, would_get=result)

    # --- a plugin failed ---

    def _undecided(
        self,
        known: PodExplanation,
        profile: Profile,
        pod: PodInfo,
        decision: CycleError,
        effort: Effort,
    ) -> PodExplanation:
        """A plugin failed: if because of devices, with the node and the request."""
        failed, conflicting = [], []
        device_explainer = DeviceExplainer(profile, decision.state, effort.stopwatch())
        for node in self._cluster.nodes[: effort.nodes]:
            explanation = device_explainer.explained(node)
            if explanation is None:
                continue
            found = with_devices(NodeExplanation(node=node.name, plugin=NAME), explanation)
            if explanation.error:
                failed.append(found)
            elif explanation.conflict is not None:
                conflicting.append(found)
        # Some errors occur only after what is in conflict was tried.
        failed = failed or conflicting
        first = nearest(failed)
        groups = alike(failed)
        status = decision.status
        reason = str(status.error) if status.error is not None else status.message
        if first is not None:
            reason = _obstacle(first, len(self._cluster))
        helpful, notes = self._proposals.for_devices(profile, decision.state, pod, groups, effort)
        guards = self._proposals.guards(profile, decision.state, pod, groups, effort)
        if guards:
            helpful, notes = (*guards, *helpful), tuple(n for n in notes if n != NO_CHANGE)
        return replace(
            known,
            state=PodState.FAILED,
            verdict=f"{sentence(f'Pod {known.pod} cannot be scheduled: {reason}')}{advice(helpful)}",
            reason=reason,
            nodes=tuple(node for group in groups for node in group.nodes),
            proposals=helpful,
            notes=notes,
        )

    # --- no node fits ---

    def _unplaced(
        self,
        known: PodExplanation,
        profile: Profile,
        pod: PodInfo,
        decision: NoNode,
        effort: Effort,
    ) -> PodExplanation:
        total = len(self._cluster)
        if decision.pre_filter_message or not total:
            return _pending(known, decision.pre_filter_message or "there are no nodes")
        nodes, notes = self._explained_nodes(profile, pod, decision, effort)
        groups = alike(nodes)
        counts = count_reasons(decision.statuses.values())
        of_all = (
            f"none of {total} nodes takes it" if total > 1 else "the only node does not take it"
        )
        obstacle = _obstacle(groups[0].nodes[0], total) if groups else ""
        if not obstacle and notes and any(group.nodes[0].plugin == NAME for group in groups):
            obstacle = NOT_PROVEN
        helpful, more_notes = self._proposals.for_devices(
            profile, decision.state, pod, groups, effort
        )
        by_pod = self._proposals.pod_changes(profile, pod, decision, effort)
        if not helpful:
            not_found = NOT_ALL_TRIED if notes else NO_CHANGE
            more_notes = () if by_pod else more_notes or (not_found,)
        found = _pending(known, f"{of_all} ({counts}){f'; {obstacle}' if obstacle else ''}")
        changes = (*helpful, *by_pod)
        told = groups[0].nodes[0].node if obstacle and groups else ""
        return replace(
            found,
            verdict=f"{found.verdict}{advice(changes, told)}",
            nodes=tuple(node for group in groups for node in group.nodes),
            proposals=changes,
            notes=(*notes, *more_notes),
        )

    def _explained_nodes(
        self, profile: Profile, pod: PodInfo, decision: NoNode, effort: Effort
    ) -> tuple[list[NodeExplanation], tuple[str, ...]]:
        nodes = []
        looked_at, is_over = 0, effort.stopwatch()
        device_explainer = DeviceExplainer(profile, decision.state, is_over)
        for name, status in sorted(decision.statuses.items()):
            node = self._cluster.node(name)
            found = NodeExplanation(node=name, plugin=status.plugin, reasons=status.reasons)
            if node is not None and looked_at < effort.nodes and not is_over():
                closer = self._explained_node(found, profile, pod, node, device_explainer)
                looked_at += closer is not None
                found = closer or found
            nodes.append(found)
        passed_over = len(nodes) - looked_at
        if not passed_over:
            return nodes, ()
        were = "was" if looked_at == 1 else "were"
        shown = f"{counted(looked_at, 'node')} {were} looked at closely"
        return nodes, (f"{shown}, {passed_over} {'was' if passed_over == 1 else 'were'} not.",)

    def _explained_node(
        self,
        found: NodeExplanation,
        profile: Profile,
        pod: PodInfo,
        node: NodeInfo,
        device_explainer: DeviceExplainer,
    ) -> NodeExplanation | None:
        """The values behind a plugin's reasons; None if the time is over: incomplete values may mislead."""
        state = device_explainer.state
        plugin = profile.plugin(found.plugin)
        values = details(plugin, state, pod, node)
        if not isinstance(plugin, ClaimFilter):
            return replace(found, details=values)
        explanation = device_explainer.explained(node)
        besides = tuple(other_rejections(profile, state, pod, node))
        found = replace(found, details=values, besides=besides)
        if explanation is None:
            return found
        return with_devices(found, explanation) if explanation.is_complete else None


def _pending(known: PodExplanation, reason: str) -> PodExplanation:
    verdict = sentence(f"Pod {known.pod} is pending: {reason}")
    return replace(known, state=PodState.DOES_NOT_FIT, verdict=verdict, reason=reason)


def _obstacle(node: NodeExplanation, total: int) -> str:
    """Why the nearest node does not fit."""
    text = node.summary or next(iter(node.details), "")
    if not text:
        return ""
    return f"on node {node.node}, which comes nearest, {text}" if total > 1 else text
