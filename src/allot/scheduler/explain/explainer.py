"""Why a pod is pending: everything that can be found out when it is asked for. Conditions have `failure_reasons`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, NamedTuple

from allot.allocation import Explanation, StepBudget, Wording, explain, proposals
from allot.allocation.explain.amounts import counted
from allot.allocation.explain.phrases import pool_text, sentence
from allot.allocation.explain.transfer import transferred
from allot.allocation.problem import AllocationProblem
from allot.api.base import replace
from allot.api.claims import AllocationResult
from allot.deadline import Deadline, DeadlineExceededError
from allot.scheduler.core.decisions import Chosen, CycleError, NoNode
from allot.scheduler.core.scheduling_cycle import SchedulingCycle
from allot.scheduler.explain.claim_summaries import summary_of
from allot.scheduler.explain.explanations import (
    ClaimSummary,
    NodeExplanation,
    PodExplanation,
    PodState,
    Proposed,
    requests_in,
)
from allot.scheduler.explain.guard_proposals import guard_proposals
from allot.scheduler.explain.node_details import details
from allot.scheduler.explain.node_groups import NodeGroup, alike, nearest
from allot.scheduler.explain.pod_changes import changed_pods, pod_change_text
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.deadlines import UNLIMITED, DecisionDeadline
from allot.scheduler.framework.fit_errors import count_reasons
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME
from allot.scheduler.plugins.dynamic_resources.claim_filter import ClaimFilter
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

MAX_TRIED_ALIKE: Final = 5
"""On so many nodes that look alike it is tried what would help, until something does."""
PROPOSAL_STEPS: Final = 2_000
"""Each of many proposals is searched for; those worth making are easy."""
NODE_AFFINITY: Final = "NodeAffinity"
NO_CHANGE: Final = "No single change was found that would make it fit."


IsOver = Callable[[], bool]


def untimed() -> IsOver:
    return lambda: False


def within(seconds: float, clock: Callable[[], float]) -> Callable[[], IsOver]:
    """A stopwatch: what it returns when it is started says whether the time is over."""

    def start() -> IsOver:
        deadline = clock() + seconds
        return lambda: clock() > deadline

    return start


def deadline_of(is_over: IsOver) -> Deadline:
    def ask() -> None:
        if is_over():
            raise DeadlineExceededError

    return ask


class Effort(NamedTuple):
    """How much an explanation may cost."""

    nodes: int = 100
    """So many are looked at closely."""
    proposal_nodes: int = 2
    """For so many kinds of nodes, beginning with those that come nearest, it is found out what would help."""
    stopwatch: Callable[[], IsOver] = untimed
    """Limits the time for looking closely, and again that for finding out what would help."""
    decision_seconds: float = 0.0
    """Limits the time for the decision itself; 0: step budgets alone do."""


class PodExplainer:
    """Explains decisions. Nothing is changed by it."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster

    def explain(
        self,
        profile: Profile,
        pod: PodInfo,
        effort: Effort = Effort(),  # noqa: B008 - a value
    ) -> PodExplanation:
        """What would happen if the pod were tried now: its node and devices, or why no node takes it."""
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

    # --- it fits ---

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

    # --- it cannot be decided ---

    def _undecided(
        self,
        known: PodExplanation,
        profile: Profile,
        pod: PodInfo,
        decision: CycleError,
        effort: Effort,
    ) -> PodExplanation:
        """An error: if it comes from devices, the node and the request where it does."""
        failed = []
        device_explainer = _DeviceExplainer(profile, decision.state, effort.stopwatch())
        for node in self._cluster.nodes[: effort.nodes]:
            explanation = device_explainer.explained(node)
            if explanation is not None and explanation.error:
                found = NodeExplanation(node=node.name, plugin=NAME)
                failed.append(_with_findings(found, explanation))
        first = nearest(failed)
        groups = alike(failed)
        status = decision.status
        reason = str(status.error) if status.error is not None else status.message
        if first is not None:
            reason = _obstacle(first, len(self._cluster))
        helpful, notes = self._helpful(profile, decision.state, groups, effort)
        guards = self._with_guards(profile, decision.state, pod, groups, effort)
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

    # --- it does not ---

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
        nodes, notes = self._looked_at(profile, pod, decision, effort)
        groups = alike(nodes)
        counts = count_reasons(decision.statuses.values())
        of_all = (
            f"none of {total} nodes takes it" if total > 1 else "the only node does not take it"
        )
        obstacle = _obstacle(groups[0].nodes[0], total) if groups else ""
        helpful, more_notes = self._helpful(profile, decision.state, groups, effort)
        by_pod = self._with_changed_pod(profile, pod, decision, effort)
        if not helpful:
            more_notes = () if by_pod else more_notes or (NO_CHANGE,)
        found = _pending(known, f"{of_all} ({counts}){f'; {obstacle}' if obstacle else ''}")
        changes = (*helpful, *by_pod)
        return replace(
            found,
            verdict=f"{found.verdict}{advice(changes)}",
            nodes=tuple(node for group in groups for node in group.nodes),
            proposals=changes,
            notes=(*notes, *more_notes),
        )

    def _looked_at(
        self, profile: Profile, pod: PodInfo, decision: NoNode, effort: Effort
    ) -> tuple[list[NodeExplanation], tuple[str, ...]]:
        nodes = []
        looked_at, is_over = 0, effort.stopwatch()
        device_explainer = _DeviceExplainer(profile, decision.state, is_over)
        for name, status in sorted(decision.statuses.items()):
            node = self._cluster.node(name)
            found = NodeExplanation(node=name, plugin=status.plugin, reasons=status.reasons)
            if node is not None and looked_at < effort.nodes and not is_over():
                closer = self._closely(found, profile, pod, node, device_explainer)
                looked_at += closer is not None
                found = closer or found
            nodes.append(found)
        passed_over = len(nodes) - looked_at
        if not passed_over:
            return nodes, ()
        were = "was" if looked_at == 1 else "were"
        shown = f"{counted(looked_at, 'node')} {were} looked at closely"
        return nodes, (f"{shown}, {passed_over} {'was' if passed_over == 1 else 'were'} not.",)

    def _closely(
        self,
        found: NodeExplanation,
        profile: Profile,
        pod: PodInfo,
        node: NodeInfo,
        device_explainer: _DeviceExplainer,
    ) -> NodeExplanation | None:
        """The values behind what a plugin said; None if time ran out meanwhile, because a part of them may mislead."""
        state = device_explainer.state
        plugin = profile.plugin(found.plugin)
        values = details(plugin, state, pod, node)
        if not isinstance(plugin, ClaimFilter):
            return replace(found, details=values)
        explanation = device_explainer.explained(node)
        besides = tuple(_other_refusals(profile, state, pod, node))
        found = replace(found, details=values, besides=besides)
        if explanation is None:
            return found
        return _with_findings(found, explanation) if explanation.is_complete else None

    # --- what would help ---

    def _helpful(
        self,
        profile: Profile,
        state: CycleState,
        groups: Sequence[NodeGroup],
        effort: Effort,
    ) -> tuple[tuple[Proposed, ...], tuple[str, ...]]:
        """What would help on the nodes that come nearest, and what else is to be said about that."""
        plugin = profile.plugin(NAME)
        lacking = [
            group for group in groups if group.nodes[0].requests and not group.nodes[0].besides
        ]
        if not isinstance(plugin, ClaimFilter) or not lacking:
            return (), ()
        found: list[Proposed] = []
        is_over = effort.stopwatch()
        for group in lacking[: effort.proposal_nodes]:
            # What keeps two nodes from taking the pod may be the same, and what helps there may not.
            for member in group.nodes[:MAX_TRIED_ALIKE]:
                helpful = self._on_node(plugin, state, member.node, is_over)
                found += helpful
                if helpful:
                    break
        if is_over():
            return tuple(found), ("Not everything that might help was tried.",)
        return tuple(found), () if found else (NO_CHANGE,)

    def _on_node(
        self, plugin: ClaimFilter, state: CycleState, name: str, is_over: IsOver
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
        return [Proposed(name, wording.change(each.change), each.change) for each in helpful]

    def _with_guards(
        self,
        profile: Profile,
        state: CycleState,
        pod: PodInfo,
        failed: Sequence[NodeGroup],
        effort: Effort,
    ) -> tuple[Proposed, ...]:
        """What keeps selectors from ending in an error, so that a node takes the pod."""
        plugin = profile.plugin(NAME)
        if not isinstance(plugin, ClaimFilter):
            return ()
        first = {group.nodes[0].node: None for group in failed}
        others = {node.name: None for node in self._cluster.nodes[: effort.nodes]}
        nodes = [node for name in first | others if (node := self._cluster.node(name)) is not None]

        def is_refused(node: NodeInfo) -> bool:
            return any(True for _ in _other_refusals(profile, state, pod, node))

        deadline = deadline_of(effort.stopwatch())
        return tuple(guard_proposals(plugin, state, nodes, is_refused, deadline)) if failed else ()

    def _with_changed_pod(
        self, profile: Profile, pod: PodInfo, decision: NoNode, effort: Effort
    ) -> tuple[Proposed, ...]:
        """What the pod would have to ask of nodes to get one. Each change is decided on like the pod itself."""
        if all(status.plugin != NODE_AFFINITY for status in decision.statuses.values()):
            return ()
        found: dict[object, Proposed] = {}
        is_over = effort.stopwatch()
        for about, change, changed in changed_pods(pod, self._cluster.nodes):
            if about in found or is_over():
                continue
            answer = SchedulingCycle(profile, self._cluster).decide(changed)
            if isinstance(answer, Chosen):
                found[about] = Proposed(answer.node_name, pod_change_text(change), change)
        return tuple(found.values())


class _DeviceExplainer:
    """Explains the devices of nodes for one pod. Nodes that look alike share an explanation."""

    def __init__(self, profile: Profile, state: CycleState, is_over: IsOver) -> None:
        self.state = state
        self._plugin = profile.plugin(NAME)
        self._deadline = deadline_of(is_over)
        self._known: dict[Hashable, tuple[AllocationProblem, Explanation]] = {}

    def explained(self, node: NodeInfo) -> Explanation | None:
        """None if devices have nothing to do with the pod there."""
        plugin = self._plugin
        allocation_problem = (
            plugin.allocation_problem(self.state, node) if isinstance(plugin, ClaimFilter) else None
        )
        if allocation_problem is None or not isinstance(plugin, ClaimFilter):
            return None
        node_class = plugin.node_equivalence_class(self.state, node)
        if node_class is not None and node_class in self._known:
            example, explanation = self._known[node_class]
            return transferred(explanation, example, allocation_problem)
        explanation = explain(allocation_problem, deadline=self._deadline)
        if node_class is not None and explanation.is_complete and not explanation.error:
            self._known[node_class] = allocation_problem, explanation
        return explanation


def _with_findings(found: NodeExplanation, explanation: Explanation) -> NodeExplanation:
    """The explanation of a node, with the result of the allocation of its devices."""
    wording = Wording()
    pools = tuple(map(pool_text, explanation.pools))
    return replace(
        found,
        details=(*pools, *found.details),
        conflict=explanation.conflict,
        summary=wording.conflict(explanation),
        requests=requests_in(explanation, wording),
    )


def _other_refusals(
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


def advice(proposals: Sequence[Proposed]) -> str:
    """The first change that would help, as the last sentence of a verdict; may be empty."""
    return f" What would help: {proposals[0].change}." if proposals else ""


def _pending(known: PodExplanation, reason: str) -> PodExplanation:
    verdict = sentence(f"Pod {known.pod} is pending: {reason}")
    return replace(known, state=PodState.DOES_NOT_FIT, verdict=verdict, reason=reason)


def _obstacle(node: NodeExplanation, total: int) -> str:
    """What keeps the nearest node from taking the pod."""
    text = node.summary or next(iter(node.details), "")
    if not text:
        return ""
    return f"on node {node.node}, which comes nearest, {text}" if total > 1 else text
