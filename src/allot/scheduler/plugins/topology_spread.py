"""PodTopologySpread: matching pods are spread evenly over topology domains, such as zones or hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from allot.api.selectors import LabelSelector
from allot.api.taints import first_untolerated
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import (
    ASSIGNED_POD,
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
from allot.scheduler.framework.status import (
    SKIP,
    SUCCESS,
    Status,
    unresolvable,
    unschedulable,
)
from allot.scheduler.plugins.topology_spread_scores import (
    SpreadScores,
    normalize_spread_scores,
    spread_scores,
)
from allot.scheduler.state.affinity import (
    HOSTNAME_LABEL,
    ZONE_LABEL,
    SpreadConstraint,
    spread_constraint,
)
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.matching_pods import PodQuery, PodSelector
from allot.scheduler.state.nodes import NodeFacts, NodeInfo
from allot.scheduler.state.pods import PodInfo

UNEVEN: Final = unschedulable("node(s) didn't match pod topology spread constraints")
NO_LABEL: Final = unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)

SYSTEM_DEFAULTS: Final = (
    SpreadConstraint(3, HOSTNAME_LABEL, is_required=False, selector=None),
    SpreadConstraint(5, ZONE_LABEL, is_required=False, selector=None),
)
"""The default constraints, for pods of services and workloads without constraints of their own."""

DefaultSelector = Callable[[PodInfo], LabelSelector | None]
"""The pods of the same service or workload; None if the pod belongs to none."""


def no_default_selector(_pod: PodInfo) -> None:
    """No pod belongs to a service or workload."""
    return


@dataclass
class Domains:
    """Matching pods by domain of a constraint, on the nodes that are included."""

    constraint: SpreadConstraint
    counts: dict[str, int]
    self_match: int
    _minimum: int | None = None

    def clone(self) -> Domains:
        return Domains(self.constraint, dict(self.counts), self.self_match, self._minimum)

    @property
    def minimum(self) -> int:
        """The global minimum of matching pods per domain; 0 if there are fewer than `minDomains` domains."""
        if self._minimum is None:
            too_few = len(self.counts) < self.constraint.min_domains
            self._minimum = 0 if too_few else min(self.counts.values(), default=0)
        return self._minimum

    def count(self, value: str, change: int) -> None:
        self.counts[value] = self.counts.get(value, 0) + change
        self._minimum = None


class SpreadState(list[Domains]):
    """The domains of each required constraint."""

    def clone(self) -> SpreadState:
        return SpreadState(domains.clone() for domains in self)


class PodTopologySpread(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters by DoNotSchedule constraints, scores by ScheduleAnyway ones."""

    name = "PodTopologySpread"
    filters_locally = False
    scores_locally = False

    def __init__(
        self,
        args: Mapping[str, Any] | None = None,
        default_selector: DefaultSelector = no_default_selector,
    ) -> None:
        args = args or {}
        self._by_system = (args.get("defaultingType") or "System") == "System"
        listed = args.get("defaultConstraints") or ()
        defaults = (
            SYSTEM_DEFAULTS if self._by_system else tuple(spread_constraint(c, {}) for c in listed)
        )
        self._default_selector = default_selector
        self._required_defaults = tuple(c for c in defaults if c.is_required)
        self._preferred_defaults = tuple(c for c in defaults if not c.is_required)

    def _constraints(self, pod: PodInfo, *, required: bool) -> tuple[SpreadConstraint, ...]:
        if pod.spread_constraints:
            return tuple(c for c in pod.spread_constraints if c.is_required is required)
        wanted = self._required_defaults if required else self._preferred_defaults
        selector = self._default_selector(pod) if wanted else None
        if selector is None:
            return ()
        return tuple(c._replace(selector=selector) for c in wanted)

    # --- filter ---

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        constraints = self._constraints(pod, required=True)
        if not constraints:
            return PRE_FILTER_SKIP
        state[self.name] = count_domains(pod, constraints, cluster)
        return PRE_FILTER_SUCCESS

    def may_reject(self, pod: PodInfo) -> bool:
        return bool(pod.spread_constraints) or bool(self._required_defaults)

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        _count_other(state[self.name], pod, other, node, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        _count_other(state[self.name], pod, other, node, -1)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        labels = node.labels
        for domains in state[self.name]:
            constraint = domains.constraint
            value = labels.get(constraint.topology_key)
            if value is None:
                return NO_LABEL
            there = domains.counts.get(value, 0) + domains.self_match
            if there - domains.minimum > constraint.max_skew:
                return UNEVEN
        return SUCCESS

    # --- score ---

    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        constraints = self._constraints(pod, required=False)
        if not constraints:
            return SKIP
        strict = bool(pod.spread_constraints) or not self._by_system
        found = spread_scores(constraints, nodes, strict=strict)
        found.count_pods(
            cluster,
            [query_of(pod, constraint) for constraint in constraints],
            lambda constraint, node: counts_node(constraint, pod, node),
        )
        state[f"{self.name}/score"] = found
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        found: SpreadScores = state[f"{self.name}/score"]
        return found.score(node)

    def normalize(
        self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo], scores: list[int]
    ) -> None:
        found: SpreadScores = state[f"{self.name}/score"]
        normalize_spread_scores(scores, [node.name in found.ignored for node in nodes])

    # --- events ---

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        pods = ClusterEvent(ASSIGNED_POD, Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL)
        nodes = ClusterEvent(
            NODE,
            Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT,
        )
        itself = ClusterEvent(WAITING_POD, Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATIONS)
        return (
            EventRegistration(pods, self._pod_matters),
            EventRegistration(nodes, self._node_matters),
            EventRegistration(itself),
        )

    def _pod_matters(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> Hint:
        changed = [one for one in (old, new) if one is not None and one.namespace == pod.namespace]
        counts = [
            [c.selector is not None and c.selector.matches(one.labels) for one in changed]
            for c in self._constraints(pod, required=True)
        ]
        if old is not None and new is not None:
            return Hint.QUEUE if any(len(set(one)) > 1 for one in counts) else Hint.SKIP
        return Hint.QUEUE if any(any(one) for one in counts) else Hint.SKIP

    def _node_matters(self, pod: PodInfo, old: NodeFacts | None, new: NodeFacts | None) -> Hint:
        keys = {c.topology_key for c in self._constraints(pod, required=True)}
        had = old is not None and keys <= old.labels.keys()
        has = new is not None and keys <= new.labels.keys()
        return Hint.QUEUE if had or has else Hint.SKIP


def query_of(pod: PodInfo, constraint: SpreadConstraint) -> PodQuery:
    """The pods that a constraint counts: selected, in the same namespace, not terminating."""
    meant = PodSelector(frozenset((pod.namespace,)), constraint.selector)
    return PodQuery((meant,), with_terminating=False)


def counts_node(constraint: SpreadConstraint, pod: PodInfo, node: NodeInfo) -> bool:
    """Whether a node is included, by the constraint's affinity and taints policies."""
    if constraint.honors_affinity and not pod.accepts_node(node.name, node.labels):
        return False
    if not constraint.honors_taints or not node.blocking_taints:
        return True
    return first_untolerated(node.blocking_taints, pod.tolerations) is None


def count_domains(
    pod: PodInfo, constraints: tuple[SpreadConstraint, ...], cluster: ClusterState
) -> SpreadState:
    """Matching pods per domain. Only nodes that have all the topology keys count."""
    found = SpreadState(
        Domains(c, {}, int(c.selector is not None and c.selector.matches(pod.labels)))
        for c in constraints
    )
    keys = [c.topology_key for c in constraints]
    parts = [
        (
            domains.counts,
            domains.constraint,
            cluster.matching_pods(query_of(pod, domains.constraint)),
        )
        for domains in found
    ]
    everywhere = pod.node_selector is None and pod.required_nodes is None
    for node in cluster.nodes:
        labels = node.labels
        if not all(key in labels for key in keys):
            continue
        for counts, constraint, matching in parts:
            if (everywhere and not constraint.honors_taints) or counts_node(constraint, pod, node):
                value = labels[constraint.topology_key]
                counts[value] = counts.get(value, 0) + matching.get(node.name, 0)
    return found


def _count_other(
    found: SpreadState, pod: PodInfo, other: PodInfo, node: NodeInfo, change: int
) -> None:
    if not all(domains.constraint.topology_key in node.labels for domains in found):
        return
    for domains in found:
        constraint = domains.constraint
        if query_of(pod, constraint).matches(other) and counts_node(constraint, pod, node):
            domains.count(node.labels[constraint.topology_key], change)
