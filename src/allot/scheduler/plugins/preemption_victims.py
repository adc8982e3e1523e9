"""Victims: the pods to evict so that a pod of higher priority fits. No side effects.

On each node all pods of lower priority are removed in a dry run; if the pod fits then, as many as
possible are added back, the most important first. The node with the least disruption wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from allot.api.raw import RawObject
from allot.api.selectors import LabelSelector, label_selector
from allot.client.steps import Steps
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.status import Code, Status, unresolvable
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PREEMPT_NEVER, PodInfo

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")
NOT_HELPFUL: Final = unresolvable("Preemption is not helpful for scheduling")

NEVER_PREEMPTS: Final = "not eligible due to preemptionPolicy=Never."
WAITS_FOR_VICTIMS: Final = "not eligible due to a terminating pod on the nominated node."

_LOWEST_PRIORITY: Final = -(2**31)
_NOT_STARTED: Final = "~"  # sorts after every time


class DryRunFilters(Protocol):
    """The profile's filters, in dry runs."""

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Update the cycle state as if `other` ran on `node`."""

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Update the cycle state as if `other` did not run on `node`."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """The filters' status for the node, with its nominated pods."""


class Victims(NamedTuple):
    """Pods to be evicted from a node, the most important first."""

    node_name: str
    pods: tuple[PodInfo, ...]
    violated_budgets: int


@dataclass(frozen=True)
class DisruptionBudget:
    """A PodDisruptionBudget: how many of its pods may still be disrupted."""

    namespace: str
    selector: LabelSelector | None
    allowed: int
    disrupted: frozenset[str]
    """Names of pods whose disruption is already counted."""

    @classmethod
    def of(cls, budget: RawObject) -> DisruptionBudget:
        return cls(
            budget.metadata.namespace,
            label_selector(budget.get("spec", "selector")),
            budget.get("status", "disruptionsAllowed", default=0),
            frozenset(budget.get("status", "disruptedPods", default={})),
        )

    def covers(self, pod: PodInfo) -> bool:
        return (
            self.selector is not None
            and self.namespace == pod.namespace
            and bool(pod.labels)
            and self.selector.matches(pod.labels)
        )


def why_not_eligible(pod: PodInfo, nominated: NodeInfo | None, status: Status | None) -> str | None:
    """Why the pod must not preempt: its policy is Never, or its victims are still terminating.

    `status` is that of the nominated node; if preemption cannot help there, its victims are not
    waited for.
    """
    if pod.preemption_policy == PREEMPT_NEVER:
        return NEVER_PREEMPTS
    if nominated is None or (status is not None and status.code is Code.UNRESOLVABLE):
        return None
    waits = any(
        other.is_terminating and other.priority < pod.priority and _was_preempted(other)
        for other in nominated.pods.values()
    )
    return WAITS_FOR_VICTIMS if waits else None


def _was_preempted(pod: PodInfo) -> bool:
    found = pod.pod.condition("DisruptionTarget") or {}
    return found.get("status") == "True" and found.get("reason") == "PreemptionByScheduler"


def importance(pod: PodInfo) -> tuple[int, str]:
    """Sorts the most important pods first: by priority, then those that have run longest."""
    return (-pod.priority, pod.start_time or _NOT_STARTED)


def select_victims(
    state: CycleState,
    pod: PodInfo,
    node: NodeInfo,
    dry_run: DryRunFilters,
    budgets: Sequence[DisruptionBudget],
) -> Victims | Status:
    """The fewest and least important pods to evict from this node, or why preemption does not help."""
    node, state = node.clone(), state.clone()
    weaker = [other for other in node.pods.values() if other.priority < pod.priority]
    if not weaker:
        return NO_VICTIMS
    for other in weaker:
        _remove(state, pod, other, node, dry_run)
    status = dry_run.filter(state, pod, node)
    if status.code is not Code.SUCCESS:
        return status
    weaker.sort(key=importance)
    protected, others = split_by_budgets(weaker, budgets)
    victims: list[PodInfo] = []
    violated = 0
    for group in (protected, others):
        for other in group:
            node.add_pod(other)
            dry_run.add_pod(state, pod, other, node)
            if dry_run.filter(state, pod, node).code is not Code.SUCCESS:
                _remove(state, pod, other, node, dry_run)
                victims.append(other)
                violated += group is protected
    return Victims(node.name, tuple(sorted(victims, key=importance)), violated)


def _remove(
    state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo, dry_run: DryRunFilters
) -> None:
    node.remove_pod(other.uid)
    dry_run.remove_pod(state, pod, other, node)


def split_by_budgets(
    pods: Iterable[PodInfo], budgets: Sequence[DisruptionBudget]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """Pods whose eviction would violate a budget, and the others, if they go in this order."""
    allowed = [budget.allowed for budget in budgets]
    violating: list[PodInfo] = []
    harmless: list[PodInfo] = []
    for pod in pods:
        violates = False
        for index, budget in enumerate(budgets):
            if budget.covers(pod) and pod.name not in budget.disrupted:
                allowed[index] -= 1
                violates = violates or allowed[index] < 0
        (violating if violates else harmless).append(pod)
    return violating, harmless


NODES_AT_ONCE: Final = 8
"""Nodes that are tried before other tasks run."""


class Candidates(NamedTuple):
    """Nodes on which preemption helps, and the statuses of the others."""

    victims: tuple[Victims, ...]
    statuses: Mapping[str, Status]


def find_candidates(
    state: CycleState,
    pod: PodInfo,
    nodes: Sequence[NodeInfo],
    dry_run: DryRunFilters,
    budgets: Sequence[DisruptionBudget],
    *,
    offset: int,
    enough: int,
) -> Steps[Candidates]:
    """Try nodes from `offset` on, until there are enough candidates, one of them without violation."""
    found: list[Victims] = []
    statuses: dict[str, Status] = {}
    harmless = False
    for turn in range(len(nodes)):
        if turn % NODES_AT_ONCE == NODES_AT_ONCE - 1:
            yield
        node = nodes[(offset + turn) % len(nodes)]
        answer = select_victims(state, pod, node, dry_run, budgets)
        if isinstance(answer, Status):
            statuses[node.name] = answer
            continue
        if not answer.pods:
            continue  # it fits without preemption: the cluster has changed
        found.append(answer)
        harmless = harmless or not answer.violated_budgets
        if harmless and len(found) >= enough:
            break
    return Candidates(tuple(found), statuses)


def best_candidate(candidates: Sequence[Victims]) -> Victims:
    """The best candidate; the first of equals.

    Fewest violated budgets; then the lowest of their highest priorities; the lowest sum of
    priorities; the fewest victims; and the latest start of their most important ones.
    """
    best = candidates[0]
    for other in candidates[1:]:
        harm, least = _harm(other), _harm(best)
        if harm < least or (harm == least and _earliest_start(other) > _earliest_start(best)):
            best = other
    return best


def _harm(victims: Victims) -> tuple[int, int, int, int]:
    pods = victims.pods
    # Shifted so that every pod counts, even those with negative priority.
    total = sum(pod.priority - _LOWEST_PRIORITY for pod in pods)
    return (victims.violated_budgets, pods[0].priority, total, len(pods))


def _earliest_start(victims: Victims) -> str:
    highest = victims.pods[0].priority
    return min(pod.start_time or _NOT_STARTED for pod in victims.pods if pod.priority == highest)
