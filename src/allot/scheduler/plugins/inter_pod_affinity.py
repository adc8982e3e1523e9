"""InterPodAffinity: affinity and anti-affinity to other pods, in the domains of topology keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import (
    ASSIGNED_POD,
    NODE,
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
from allot.scheduler.framework.scores import MAX_SCORE
from allot.scheduler.framework.status import (
    SKIP,
    SUCCESS,
    Status,
    unresolvable,
    unschedulable,
)
from allot.scheduler.state.affinity import PodTerm
from allot.scheduler.state.cluster import ClusterState, Trait
from allot.scheduler.state.matching_pods import PodQuery, PodSelector
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

AFFINITY: Final = unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY: Final = unschedulable("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY: Final = unschedulable(
    "node(s) didn't satisfy existing pods anti-affinity rules"
)

TopologyPair = tuple[str, str]
"""A topology key and a value of it, such as a zone or a host."""


class TopologyPairCounts(dict[TopologyPair, int]):
    """Numbers by domain; zeros are dropped."""

    def count(self, key: str, value: str | None, change: int) -> None:
        if value is None or not change:
            return
        total = self.get((key, value), 0) + change
        if total:
            self[key, value] = total
        else:
            del self[key, value]


@dataclass
class AffinityState:
    """Per domain: the pods that the pod's terms select, and the terms of other pods that select it."""

    near: PodQuery
    """Pods that all affinity terms select."""
    apart: tuple[PodSelector, ...]
    """Pods that each anti-affinity term selects."""
    matches_itself: bool
    namespace_labels: Mapping[str, str]
    near_counts: TopologyPairCounts = field(default_factory=TopologyPairCounts)
    apart_counts: TopologyPairCounts = field(default_factory=TopologyPairCounts)
    existing_counts: TopologyPairCounts = field(default_factory=TopologyPairCounts)

    def clone(self) -> AffinityState:
        return AffinityState(
            self.near,
            self.apart,
            self.matches_itself,
            self.namespace_labels,
            TopologyPairCounts(self.near_counts),
            TopologyPairCounts(self.apart_counts),
            TopologyPairCounts(self.existing_counts),
        )

    def count_pod(self, pod: PodInfo, other: PodInfo, labels: Mapping[str, str], sign: int) -> None:
        """Count `other` on a node with these labels, or stop counting it."""
        for term in other.anti_affinity:
            if term.matches(pod.namespace, pod.labels, self.namespace_labels):
                self.existing_counts.count(term.topology_key, labels.get(term.topology_key), sign)
        if pod.affinity and self.near.matches(other):
            for term in pod.affinity:
                self.near_counts.count(term.topology_key, labels.get(term.topology_key), sign)
        for term, meant in zip(pod.anti_affinity, self.apart, strict=True):
            if meant.matches(other):
                self.apart_counts.count(term.topology_key, labels.get(term.topology_key), sign)


class InterPodAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters by required terms, the pod's own and those of others; scores by preferred ones."""

    name = "InterPodAffinity"
    filters_locally = False
    scores_locally = False
    normalizes_by_value = True
    may_reject_with = frozenset({Trait.POD_ANTI_AFFINITY})
    may_rank_with = frozenset({Trait.POD_AFFINITY})

    def __init__(self, args: Mapping[str, Any] | None = None) -> None:
        args = args or {}
        weight = args.get("hardPodAffinityWeight")
        self._hard_weight: int = 1 if weight is None else weight
        self._ignores_others_preferences = bool(args.get("ignorePreferredTermsOfExistingPods"))

    # --- filter ---

    def may_reject(self, pod: PodInfo) -> bool:
        return bool(pod.affinity or pod.anti_affinity)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        others = cluster.terms.anti_affinity
        if not others and not self.may_reject(pod):
            return PRE_FILTER_SKIP
        near = PodQuery(pod_selectors(pod.affinity, cluster))
        found = AffinityState(
            near,
            pod_selectors(pod.anti_affinity, cluster),
            matches_itself=near.matches(pod),
            namespace_labels=cluster.labels_of_namespace(pod.namespace),
        )
        for term, counts in others.items():
            if term.matches(pod.namespace, pod.labels, found.namespace_labels):
                for value, count in counts.items():
                    found.existing_counts.count(term.topology_key, value, count)
        if pod.affinity:
            keys = [term.topology_key for term in pod.affinity]
            _count_topology_pairs(found.near_counts, keys, cluster, near, 1)
        for term, meant in zip(pod.anti_affinity, found.apart, strict=True):
            _count_topology_pairs(
                found.apart_counts, (term.topology_key,), cluster, PodQuery((meant,)), 1
            )
        if not found.existing_counts and not pod.affinity and not pod.anti_affinity:
            return PRE_FILTER_SKIP
        state[self.name] = found
        return PRE_FILTER_SUCCESS

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        state[self.name].count_pod(pod, other, node.labels, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        state[self.name].count_pod(pod, other, node.labels, -1)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        found: AffinityState = state[self.name]
        labels = node.labels
        if pod.affinity and not _is_near(found, pod.affinity, labels):
            return AFFINITY
        if found.apart_counts:
            for term in pod.anti_affinity:
                value = labels.get(term.topology_key)
                if value is not None and (term.topology_key, value) in found.apart_counts:
                    return ANTI_AFFINITY
        if found.existing_counts and any(pair in found.existing_counts for pair in labels.items()):
            return EXISTING_ANTI_AFFINITY
        return SUCCESS

    # --- score ---

    def may_rank(self, pod: PodInfo) -> bool:
        return bool(pod.preferred_affinity)

    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        own = pod.preferred_affinity
        terms = cluster.terms
        if not own and (
            self._ignores_others_preferences or not (terms.affinity or terms.preferred)
        ):
            return SKIP
        scores = TopologyPairCounts()
        for term, weight in own:
            query = PodQuery(pod_selectors((term,), cluster))
            _count_topology_pairs(scores, (term.topology_key,), cluster, query, weight)
        about = (pod.namespace, pod.labels, cluster.labels_of_namespace(pod.namespace))
        if self._hard_weight:
            for term, counts in terms.affinity.items():
                if term.matches(*about):
                    for value, count in counts.items():
                        scores.count(term.topology_key, value, count * self._hard_weight)
        for (term, weight), counts in terms.preferred.items():
            if term.matches(*about):
                for value, count in counts.items():
                    scores.count(term.topology_key, value, count * weight)
        if not scores:
            return SKIP
        by_key: dict[str, dict[str, int]] = {}
        for (key, value), score in scores.items():
            by_key.setdefault(key, {})[value] = score
        state[f"{self.name}/score"] = by_key
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """The sum over the domains of the node. It can be negative."""
        total = 0
        labels = node.labels
        for key, score_by_value in state[f"{self.name}/score"].items():
            value = labels.get(key)
            if value is not None:
                total += score_by_value.get(value, 0)
        return total

    def normalize(
        self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo], scores: list[int]
    ) -> None:
        lowest, highest = min(scores, default=0), max(scores, default=0)
        span = highest - lowest
        scores[:] = [(score - lowest) * MAX_SCORE // span if span else 0 for score in scores]

    # --- events ---

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        pods = ClusterEvent(ASSIGNED_POD, Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL)
        nodes = ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return (EventRegistration(pods, _pod_matters), EventRegistration(nodes))


def _pod_matters(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> Hint:
    """An added pod can only help affinity; a deleted one can only help anti-affinity.

    Namespace selectors count as matching: an unnecessary attempt does no harm.
    """
    if new is not None and _any_means(pod.affinity, new):
        return Hint.QUEUE
    if old is not None and (
        _any_means(pod.anti_affinity, old) or _any_means(old.anti_affinity, pod)
    ):
        return Hint.QUEUE
    return Hint.SKIP


def _any_means(terms: Iterable[PodTerm], pod: PodInfo) -> bool:
    return any(
        term.selector is not None
        and (pod.namespace in term.namespaces or term.namespace_selector is not None)
        and term.selector.matches(pod.labels)
        for term in terms
    )


def pod_selectors(terms: Iterable[PodTerm], cluster: ClusterState) -> tuple[PodSelector, ...]:
    """The terms with namespace selectors replaced by the namespaces that they select now."""
    return tuple(PodSelector(_namespaces(term, cluster), term.selector) for term in terms)


def _namespaces(term: PodTerm, cluster: ClusterState) -> frozenset[str]:
    selector = term.namespace_selector
    if selector is None:
        return term.namespaces
    selected = [
        name for name, labels in cluster.namespace_labels.items() if selector.matches(labels)
    ]
    return term.namespaces.union(selected)


def _count_topology_pairs(
    counts: TopologyPairCounts,
    keys: Sequence[str],
    cluster: ClusterState,
    query: PodQuery,
    weight: int,
) -> None:
    for node_name, number in cluster.matching_pods(query).items():
        node = cluster.node(node_name)
        if node is not None:
            for key in keys:
                counts.count(key, node.labels.get(key), number * weight)


def _is_near(found: AffinityState, terms: tuple[PodTerm, ...], labels: Mapping[str, str]) -> bool:
    there = True
    for term in terms:
        value = labels.get(term.topology_key)
        if value is None:
            return False
        there = there and (term.topology_key, value) in found.near_counts
    # The first pod of a group with affinity to itself has no other pod to match.
    return there or (not found.near_counts and found.matches_itself)
