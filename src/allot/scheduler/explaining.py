"""Why a pod is pending: everything that can be found out, for those who ask. Conditions have `useful_reasons`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from allot.allocation import Explanation, StepBudget, explain, proposals
from allot.api.base import replace
from allot.api.claims import AllocationResult
from allot.deadline import Deadline, DeadlineExceededError
from allot.scheduler.claim_summaries import summary_of
from allot.scheduler.cycle import Chosen, CycleError, NoNode, SchedulingCycle
from allot.scheduler.explanations import (
    HELD,
    OF_ANOTHER_CLASS,
    ClaimSummary,
    NodeExplanation,
    PodExplanation,
    PodState,
    Proposed,
    RequestExplanation,
    alike,
    requests_in,
)
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.deadlines import UNLIMITED, NodeTimes
from allot.scheduler.framework.fit_errors import count_reasons
from allot.scheduler.node_details import details
from allot.scheduler.plugins.dynamic_resources.judging import NAME, DeviceJudge
from allot.scheduler.profiles import Profile
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

MAX_MAIN_REASON: Final = 110
HELD_BY_SEVERAL: Final = "held by other claims"
MAX_TRIED_ALIKE: Final = 5
"""On so many nodes that look alike it is tried what would help, until something does."""
PROPOSAL_STEPS: Final = 2_000
"""Each of many proposals is searched for; those worth making are easy."""


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


class Explainer:
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
        time = NodeTimes(seconds, 0.0, len(self._cluster)) if seconds else UNLIMITED
        decision = SchedulingCycle(profile, self._cluster).decide(pod, time)
        known = PodExplanation(pod=str(pod.key), scheduler_name=profile.scheduler_name)
        match decision:
            case Chosen():
                return self._placed(known, profile, pod, decision)
            case CycleError(_, status):
                verdict = f"Pod {pod.key} cannot be scheduled: {status.message}."
                return replace(known, state=PodState.FAILED, verdict=verdict)
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
        if not isinstance(plugin, DeviceJudge) or node is None:
            return
        question = plugin.question(state, node)
        if question is None:
            return
        results: tuple[AllocationResult, ...] = plugin.answer_for(
            question.claims, question.node
        ).results
        for claim, result in zip(question.claims, results, strict=False):
            yield summary_of(claim, would_get=result)

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
        nearest = _nearest(groups[0].nodes[0], total) if groups else ""
        helpful, more_notes = self._helpful(profile, decision.state, nodes, effort)
        return replace(
            _pending(known, f"{of_all} ({counts}){nearest}"),
            nodes=tuple(node for group in groups for node in group.nodes),
            proposals=helpful,
            notes=(*notes, *more_notes),
        )

    def _looked_at(
        self, profile: Profile, pod: PodInfo, decision: NoNode, effort: Effort
    ) -> tuple[list[NodeExplanation], tuple[str, ...]]:
        nodes = []
        looked_at, is_over = 0, effort.stopwatch()
        for name, status in sorted(decision.statuses.items()):
            node = self._cluster.node(name)
            found = NodeExplanation(node=name, plugin=status.plugin, reasons=status.reasons)
            if node is not None and looked_at < effort.nodes and not is_over():
                looked_at += 1
                found = self._closely(found, profile, pod, decision.state, node, is_over)
            nodes.append(found)
        passed_over = len(nodes) - looked_at
        if not passed_over:
            return nodes, ()
        return nodes, (f"{looked_at} nodes were looked at closely, {passed_over} were not.",)

    def _closely(
        self,
        found: NodeExplanation,
        profile: Profile,
        pod: PodInfo,
        state: CycleState,
        node: NodeInfo,
        is_over: IsOver,
    ) -> NodeExplanation:
        plugin = profile.plugin(found.plugin)
        values = details(plugin, state, pod, node)
        if not isinstance(plugin, DeviceJudge):
            return replace(found, details=values)
        explanation = self._explained(profile, state, node.name, is_over)
        besides = tuple(_other_refusals(profile, state, pod, node))
        if explanation is None:
            return replace(found, details=values, besides=besides)
        error = (explanation.error,) if explanation.error else ()
        return replace(
            found,
            details=(*error, *explanation.pools, *values),
            requests=requests_in(explanation),
            besides=besides,
        )

    def _helpful(
        self,
        profile: Profile,
        state: CycleState,
        nodes: list[NodeExplanation],
        effort: Effort,
    ) -> tuple[tuple[Proposed, ...], tuple[str, ...]]:
        """What would help on the nodes that come nearest, and what else is to be said about that."""
        plugin = profile.plugin(NAME)
        wanting = [node for node in nodes if node.requests and not node.besides]
        if not isinstance(plugin, DeviceJudge) or not wanting:
            return (), ()
        found: list[Proposed] = []
        is_over = effort.stopwatch()
        for group in alike(wanting)[: effort.proposal_nodes]:
            # What keeps two nodes from taking the pod may be the same, and what helps there may not.
            for member in group.nodes[:MAX_TRIED_ALIKE]:
                node = self._cluster.node(member.node)
                question = plugin.question(state, node) if node is not None else None
                if question is None:
                    continue
                budget = StepBudget(PROPOSAL_STEPS)
                helpful = proposals(question, budget, deadline=deadline_of(is_over))
                found += (Proposed(node=member.node, change=each.change) for each in helpful)
                if helpful:
                    break
        if is_over():
            return tuple(found), ("Not everything that might help was tried.",)
        if not found:
            return (), ("No single change was found that would make it fit.",)
        return tuple(found), ()

    def _explained(
        self, profile: Profile, state: CycleState, node_name: str, is_over: IsOver
    ) -> Explanation | None:
        plugin = profile.plugin(NAME)
        node: NodeInfo | None = self._cluster.node(node_name)
        if not isinstance(plugin, DeviceJudge) or node is None:
            return None
        question = plugin.question(state, node)
        return None if question is None else explain(question, deadline=deadline_of(is_over))


def _other_refusals(
    profile: Profile, state: CycleState, pod: PodInfo, node: NodeInfo
) -> Iterator[str]:
    """What stands against a node besides its devices."""
    for plugin in profile.filter:
        if plugin.name == NAME or plugin.name in state.skipped_filters:
            continue
        status = plugin.filter(state, pod, node)
        if not status.is_success:
            values = details(plugin, state, pod, node)
            yield "; ".join((status.message, *values))


def _pending(known: PodExplanation, reason: str) -> PodExplanation:
    verdict = f"Pod {known.pod} is pending: {reason}."
    return replace(known, state=PodState.DOES_NOT_FIT, verdict=verdict, reason=reason)


def _nearest(node: NodeExplanation, total: int) -> str:
    """The request that keeps the nearest node from taking the pod."""
    request = _obstacle(node.requests)
    if request is None:
        return f": {node.details[0]}" if total == 1 and node.details else ""
    where = f"on node {node.node}, which comes nearest, " if total > 1 else ""
    devices = f"{request.wanted} device{'s' * (request.wanted != 1)}"
    found = f"request {request.request} of claim {request.claim} finds {request.found} of {devices}"
    return f"; {where}{found}{_main_reason(request)}"


def _obstacle(requests: Sequence[RequestExplanation]) -> RequestExplanation | None:
    """The first request that lacks devices; if it has alternatives, the one that came furthest."""
    for _, alternatives in groupby(requests, lambda each: (each.claim, each.name)):
        tried = list(alternatives)
        if all(each.found < each.wanted for each in tried):
            return max(tried, key=lambda each: each.found / each.wanted)
    return None


def _main_reason(request: RequestExplanation) -> str:
    """Why most devices that come into question were refused, if that is short."""
    if all(refusal.reason.startswith(OF_ANOTHER_CLASS) for refusal in request.refusals):
        of_class = " of its class" if request.refusals else ""
        return f", because there are {'no more' if request.found else 'none'}{of_class}"
    counts: Counter[str] = Counter()
    for refusal in request.refusals:
        counts[HELD.sub(HELD_BY_SEVERAL, refusal.reason)] += len(refusal.devices)
    held = [refusal.reason for refusal in request.refusals if HELD.fullmatch(refusal.reason)]
    if len(held) == 1:
        counts[held[0]] = counts.pop(HELD_BY_SEVERAL)
    main, number = max(
        counts.items(), key=lambda pair: (not pair[0].startswith(OF_ANOTHER_CLASS), pair[1])
    )
    text = f" ({number} device{'s' * (number != 1)}: {main})"
    return text if len(text) <= MAX_MAIN_REASON else ""
