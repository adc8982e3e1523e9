"""The reason in a condition: what cannot be satisfied on the nearest node, and what would help.

    an attempt fails ─► cached for such pods, and still true? ─► it is in the condition at once
                          │ no
                          ├─ the active queue is empty, and there is time left: computed at once
                          └─ else: later, when both hold; until then the condition has the usual summary

Pods with equal claims share a reason until the devices of the examined nodes change.
Finding reasons takes at most a tenth of the time that deciding takes, and a little when nothing else is to be done.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple

from allot.allocation import Explanation, Proposals, StepBudget, Wording, explain, proposals
from allot.allocation.explain.changes import AnyChange, ReleaseClaim
from allot.allocation.explain.phrases import sentence
from allot.allocation.problem import AllocationProblem
from allot.api.similar_names import joined_with_or, similar_names
from allot.deadline import DeadlineExceededError
from allot.lru_cache import LRUCache
from allot.scheduler.core.decisions import Chosen, CycleError, NoNode
from allot.scheduler.core.failure_explainer import ReportReason, UnschedulablePod
from allot.scheduler.explain.alternatives import unavailable_alternatives
from allot.scheduler.explain.effort import deadline_of, within
from allot.scheduler.explain.errors_elsewhere import fails_elsewhere
from allot.scheduler.explain.explanations import NodeExplanation, requests_in
from allot.scheduler.explain.node_groups import distance
from allot.scheduler.explain.proposals import other_rejections
from allot.scheduler.framework.node_statuses import NodeStatuses
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME
from allot.scheduler.plugins.dynamic_resources.claim_filter import ClaimFilter
from allot.scheduler.plugins.dynamic_resources.filter_results import shortened
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

MAX_EXPLAINED_NODES: Final = 6
"""How many nodes are explained."""
MAX_COMPARED_NODES: Final = 200
"""Among how many nodes different ones are searched."""
MAX_SECONDS: Final = 0.02
"""The time limit for all nodes together, because it blocks the event loop. `allot explain` has more time."""
MAX_HELP_SECONDS: Final = 0.01
"""The time limit for proposals."""
MAX_REASON: Final = 600
MAX_SHOWN_EXPRESSION: Final = 160
PROPOSAL_STEPS: Final = 200
MAX_PROPOSALS: Final = 3
"""How many proposals are searched; the condition has room for one."""
MAX_KNOWN: Final = 1000
"""Reasons that are cached."""
MAX_WAITING: Final = 10_000
"""Pods whose reason is reported later. Above this number, the oldest get it at their next attempt."""
SHARE: Final = 0.1
"""The share of the time for scheduling and explaining that explaining may take."""
IDLE_SHARE: Final = 0.01
"""The share of wall-clock time that explaining may take."""
MAX_SAVED_SECONDS: Final = 0.25
"""The most time for explaining that accumulates."""
IDLE_POLL_SECONDS: Final = 0.1
"""The delay of reasons while the active queue is not empty, or no time is left."""


class TimeBudget:
    """The time budget of explaining, which grows with the time that scheduling takes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._saved = MAX_SAVED_SECONDS
        self._counted_at = clock()

    def earn(self, seconds: float) -> None:
        """Add the time of a scheduling cycle to the budget."""
        self._save(seconds * SHARE / (1 - SHARE))

    @property
    def is_left(self) -> bool:
        now = self._clock()
        self._save((now - self._counted_at) * IDLE_SHARE)
        self._counted_at = now
        return self._saved > 0

    def spend(self, seconds: float) -> None:
        self._saved -= seconds

    def _save(self, seconds: float) -> None:
        self._saved = min(self._saved + seconds, MAX_SAVED_SECONDS)


class _EquivalenceKey(NamedTuple):
    """The equivalence key of pods that share a reason, and the names of this pod's claims."""

    key: Hashable
    claims: tuple[str, ...]


class _Known(NamedTuple):
    """The explanation of the nearest node (None without one), and what would help there."""

    explanation: Explanation | None
    helpful: tuple[AnyChange, ...]
    claims: tuple[str, ...]
    """The names of the claims in the explanation."""
    equivalence_key: tuple[tuple[str, int], ...]
    """The examined nodes, with the number of their last change."""


class FailureReasons:
    """Computes, shares and caches reasons. For use in one event loop."""

    def __init__(
        self,
        cluster: ClusterState,
        is_idle: Callable[[], bool],
        clock: Callable[[], float],
        cpu_clock: Callable[[], float] | None = None,
    ) -> None:
        """`is_idle` says whether the active queue is empty.

        `cpu_clock` limits single explanations, so that a busy machine does not change what is found; without one,
        `clock` does.
        """
        self._cluster = cluster
        self._is_idle = is_idle
        self._clock = clock
        self._cpu_clock = cpu_clock or clock
        self.time_budget = TimeBudget(clock)
        self.decided = self.time_budget.earn
        self._known: LRUCache[Hashable, _Known] = LRUCache(MAX_KNOWN)
        self._waiting: OrderedDict[str, tuple[UnschedulablePod, ReportReason]] = OrderedDict()
        """By uid of the pod."""
        self.explanations = 0
        """How often a node was explained; tests count it."""

    def __len__(self) -> int:
        """The number of pods whose reason is reported later."""
        return len(self._waiting)

    def of(self, rejection: UnschedulablePod) -> str | None:
        """The reason; empty if devices are not the reason, None if it is computed later."""
        key = _equivalence_key_of(rejection)
        if key is None:
            return _similar_classes(rejection)
        known = self._still_true(rejection, key)
        if known is None and self._may_explain:
            known = self._find(rejection, key)
        return None if known is None else _reason_text(known, key, rejection.pod.namespace)

    def of_error(self, profile: Profile, pod: PodInfo, error: CycleError) -> str | None:
        """The reason of an attempt that ended in an error: the request, the expression and the devices.

        None if it cannot be computed now; the next attempt may have it.
        """
        if error.status.plugin != NAME:
            return ""
        some = islice(self._cluster.nodes, MAX_COMPARED_NODES)
        statuses = NodeStatuses((node.name, error.status) for node in some)
        decision = NoNode(error.state, statuses, "", frozenset({NAME}), frozenset())
        return self.of(UnschedulablePod(profile, pod, decision))

    def of_choice(self, profile: Profile, chosen: Chosen, pod: PodInfo) -> str:
        """Why a pod that gets a node does not get better alternatives there (KEP-4816); empty if it gets the best.

        Also empty if no time is left.
        """
        claim_filter = profile.plugin(NAME)
        if not isinstance(claim_filter, ClaimFilter) or not claim_filter.has_alternatives(
            chosen.state
        ):
            return ""
        node = self._cluster.node(chosen.node_name)
        allocation_problem = (
            claim_filter.allocation_problem(chosen.state, node) if node is not None else None
        )
        if allocation_problem is None or not self._may_explain:
            return ""
        started = self._clock()
        deadline = deadline_of(within(MAX_HELP_SECONDS, self._cpu_clock)())
        wording = Wording(pod.namespace, max_expression=MAX_SHOWN_EXPRESSION)
        texts = list(unavailable_alternatives(allocation_problem, wording, deadline))
        self.time_budget.spend(self._clock() - started)
        return (
            shortened(f"On node {chosen.node_name}, {'; '.join(texts)}.", MAX_REASON)
            if texts
            else ""
        )

    # --- later ---

    def report_later(self, rejection: UnschedulablePod, report: ReportReason) -> bool:
        """Report a reason once there is time. Whether `report_all` must be started for that."""
        was_empty = not self._waiting
        self._waiting.pop(rejection.pod.uid, None)
        self._waiting[rejection.pod.uid] = rejection, report
        if len(self._waiting) > MAX_WAITING:
            self._waiting.popitem(last=False)
        return was_empty

    async def report_all(self) -> None:
        """Report all pending reasons."""
        while self._waiting:
            if not self._may_explain:
                await asyncio.sleep(IDLE_POLL_SECONDS)
                continue
            _, (rejection, report) = self._waiting.popitem(last=False)
            reason = self.of(rejection)
            if reason:
                await report(reason)
            await asyncio.sleep(0)

    @property
    def _may_explain(self) -> bool:
        return self._is_idle() and self.time_budget.is_left

    # --- finding out ---

    def _still_true(self, rejection: UnschedulablePod, key: _EquivalenceKey) -> _Known | None:
        known = self._known.get(key.key)
        claim_filter = rejection.profile.plugin(NAME)
        if known is None or not isinstance(claim_filter, ClaimFilter):
            return None
        statuses = rejection.decision.statuses
        for node, last_change in known.equivalence_key:
            status = statuses.get(node)
            if (
                status is None
                or status.plugin != NAME
                or claim_filter.last_change(node) != last_change
            ):
                return None
        return known

    def _find(self, rejection: UnschedulablePod, key: _EquivalenceKey) -> _Known:
        started = self._clock()
        known = self._nearest(rejection, key)
        self._known.put(key.key, known)
        self.time_budget.spend(self._clock() - started)
        return known

    def _nearest(self, rejection: UnschedulablePod, key: _EquivalenceKey) -> _Known:
        profile, _, decision = rejection
        claim_filter = profile.plugin(NAME)
        assert isinstance(claim_filter, ClaimFilter)
        names = self._nodes_to_explain(claim_filter, decision)
        equivalence_key = tuple((name, claim_filter.last_change(name)) for name in names)
        found: list[tuple[tuple[object, ...], Explanation, AllocationProblem]] = []
        is_over = within(MAX_SECONDS, self._cpu_clock)()
        deadline = deadline_of(is_over)
        for name in names:
            if is_over():
                break
            node = self._cluster.node(name)
            allocation_problem = (
                claim_filter.allocation_problem(decision.state, node) if node is not None else None
            )
            if allocation_problem is not None:
                self.explanations += 1
                explanation = explain(allocation_problem, deadline=deadline)
                if not explanation.is_complete:
                    break  # an incomplete explanation may mislead
                came = NodeExplanation(
                    node=name,
                    plugin=NAME,
                    conflict=explanation.conflict,
                    requests=requests_in(explanation, Wording()),
                )
                found.append((distance(came), explanation, allocation_problem))
        if not found:
            return _Known(None, (), key.claims, equivalence_key)
        _, nearest, allocation_problem = min(found, key=lambda each: each[0])
        checked: list[AnyChange] = []
        if nearest.conflict is not None:
            budget = StepBudget(PROPOSAL_STEPS)
            deadline = deadline_of(within(MAX_HELP_SECONDS, self._cpu_clock)())
            helpful = proposals(
                allocation_problem,
                budget,
                explanation=nearest,
                deadline=deadline,
                at_most=MAX_PROPOSALS,
            )
            checked = self._without_errors(rejection, claim_filter, names, helpful)
        return _Known(nearest, tuple(checked), key.claims, equivalence_key)

    def _without_errors(
        self,
        rejection: UnschedulablePod,
        claim_filter: ClaimFilter,
        names: list[str],
        helpful: Proposals,
    ) -> list[AnyChange]:
        """The changes that end in an error on none of these nodes, as far as there is time to check them."""
        profile, pod, decision = rejection
        nodes = [node for name in names if (node := self._cluster.node(name)) is not None]
        deadline = deadline_of(within(MAX_HELP_SECONDS, self._cpu_clock)())

        def is_refused(node: NodeInfo) -> bool:
            return any(True for _ in other_rejections(profile, decision.state, pod, node))

        checked: list[AnyChange] = []
        with suppress(DeadlineExceededError):  # what was not checked is not proposed
            checked.extend(
                each.change
                for each in helpful
                if not fails_elsewhere(
                    claim_filter, decision.state, nodes, each, is_refused, deadline
                )
            )
        return checked

    def _nodes_to_explain(self, claim_filter: ClaimFilter, decision: NoNode) -> list[str]:
        """Some nodes that lack devices, one of each equivalence class that is found quickly."""
        lacking = (name for name, status in decision.statuses.items() if status.plugin == NAME)
        candidates = list(islice(lacking, MAX_COMPARED_NODES))
        by_drivers = {claim_filter.drivers_on(name): name for name in reversed(candidates)}
        chosen: list[str] = []
        seen: set[Hashable] = set()
        for name in dict.fromkeys((*reversed(by_drivers.values()), *candidates)):
            node = self._cluster.node(name)
            node_class = (
                claim_filter.node_equivalence_class(decision.state, node)
                if node is not None
                else None
            )
            if node_class is not None and node_class in seen:
                continue
            seen.add(node_class)
            chosen.append(name)
            if len(chosen) == MAX_EXPLAINED_NODES:
                break
        return chosen


def _equivalence_key_of(rejection: UnschedulablePod) -> _EquivalenceKey | None:
    """The equivalence key of the pod; None if devices are not the reason."""
    profile, pod, decision = rejection
    claim_filter = profile.plugin(NAME)
    if decision.pre_filter_message or not isinstance(claim_filter, ClaimFilter):
        return None
    wanted = claim_filter.wanted(decision.state)
    if wanted is None:
        return None
    key, claims = wanted
    return _EquivalenceKey((profile.scheduler_name, pod.equivalence_class, key), claims)


def _similar_classes(rejection: UnschedulablePod) -> str:
    """For a missing class: classes with a similar name."""
    claim_filter = rejection.profile.plugin(NAME)
    if not rejection.decision.pre_filter_message or not isinstance(claim_filter, ClaimFilter):
        return ""
    classes = claim_filter.class_names
    hints = [
        f"Did you mean device class {joined_with_or(similar)} instead of {name}?"
        for name in claim_filter.unknown_class_names(rejection.pod)
        if (similar := similar_names(name, classes))
    ]
    return " ".join(hints[:1])


def _reason_text(known: _Known, key: _EquivalenceKey, namespace: str) -> str:
    """The reason, with the names of this pod's claims: at most two sentences.

    Claims of other namespaces are not named: a user who may read the pod may not be allowed to read those.
    """
    explanation = known.explanation
    if explanation is None:
        return ""
    names = dict(zip(known.claims, key.claims, strict=True))
    wording = Wording(namespace, names, MAX_SHOWN_EXPRESSION)
    conflict = wording.conflict(explanation)
    if not conflict:
        return ""
    help_ = next((each for each in known.helpful if not _is_hidden(each, namespace)), None)
    second = f" What would help: {wording.change(help_)}." if help_ is not None else ""
    first = sentence(f"On node {explanation.node}, {conflict}")
    return f"{shortened(first, MAX_REASON - len(second))}{second}"


def _is_hidden(change: AnyChange, namespace: str) -> bool:
    """Whether the change is about a claim of another namespace."""
    return isinstance(change, ReleaseClaim) and change.claim.partition("/")[0] != namespace
