"""pods/eviction: a delete that asks the pod's disruption budget first."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.api.selectors import selects_labels
from allot.api.times import written_time
from allot.apiserver.kinds.pod_conditions import with_condition

MAX_DISRUPTED_PODS: Final = 2000
BUDGET_CAUSE: Final = "DisruptionBudget"
WOULD_VIOLATE: Final = "Cannot evict pod as it would violate the pod's disruption budget."
SEVERAL_BUDGETS: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)


class EvictionGranted(NamedTuple):
    """The pod may be deleted, after the status of `budget` was written, if there is one.

    `only_this_version`: the decision depends on the state the pod was seen in.
    """

    budget: RawObject | None = None
    only_this_version: bool = False


class EvictionRefused(NamedTuple):
    """The answer to the client. `cause` belongs to reason `DisruptionBudget`, if it is not empty."""

    code: int
    reason: str
    message: str
    cause: str = ""
    retry_after_seconds: int = 0


def decide_eviction(
    pod: Pod, budgets: Iterable[RawObject], now: datetime
) -> EvictionGranted | EvictionRefused:
    """Whether the pod may go. `budgets` are those of its namespace."""
    if pod.is_finished or pod.metadata.deletion_timestamp is not None:
        return EvictionGranted()
    if pod.phase == "Pending":
        return EvictionGranted(only_this_version=True)
    concerned = [budget for budget in budgets if protects(budget, pod)]
    match concerned:
        case []:
            return EvictionGranted()
        case [budget]:
            if not pod.has_condition("Ready") and _lets_unready_pods_go(budget):
                return EvictionGranted(only_this_version=True)
            return _spend(budget, pod, now)
    return EvictionRefused(500, "", SEVERAL_BUDGETS)


def protects(budget: RawObject, pod: Pod) -> bool:
    """Whether its selector matches. An empty one matches every pod, a missing one none."""
    return selects_labels(budget.get("spec", "selector"), pod.metadata.labels)


def _lets_unready_pods_go(budget: RawObject) -> bool:
    if budget.get("spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    healthy, wanted = _count(budget, "currentHealthy"), _count(budget, "desiredHealthy")
    return healthy >= wanted > 0


def _spend(budget: RawObject, pod: Pod, now: datetime) -> EvictionGranted | EvictionRefused:
    """One of the disruptions the budget allows, or the reason why not."""
    name = budget.metadata.name
    if _count(budget, "observedGeneration") < budget.metadata.generation:
        return EvictionRefused(
            429,
            "TooManyRequests",
            WOULD_VIOLATE,
            f"The disruption budget {name} is still being processed by the server.",
            retry_after_seconds=10,
        )
    allowed = _count(budget, "disruptionsAllowed")
    disrupted: dict[str, str] = budget.get("status", "disruptedPods", default={})
    if allowed < 0:
        return _forbidden(name, "pdb disruptions allowed is negative")
    if len(disrupted) > MAX_DISRUPTED_PODS:
        return _forbidden(
            name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        )
    if allowed == 0:
        return EvictionRefused(429, "TooManyRequests", WOULD_VIOLATE, _why_none(budget))
    budget = budget.with_value(allowed - 1, "status", "disruptionsAllowed").with_value(
        disrupted | {pod.metadata.name: written_time(now)}, "status", "disruptedPods"
    )
    return EvictionGranted(_exhausted(budget, now) if allowed == 1 else budget)


def _forbidden(name: str, why: str) -> EvictionRefused:
    return EvictionRefused(
        403, "Forbidden", f'poddisruptionbudget.policy "{name}" is forbidden: {why}'
    )


def _why_none(budget: RawObject) -> str:
    name, condition = budget.metadata.name, _allowed_condition(budget)
    if condition.get("reason") == "SyncFailed":
        return (
            f"The disruption budget {name} does not allow evicting pods currently because it "
            f"failed sync: {condition.get('message', '')}"
        )
    return (
        f"The disruption budget {name} needs {_count(budget, 'desiredHealthy')} healthy pods "
        f"and has {_count(budget, 'currentHealthy')} currently"
    )


_ALLOWED: Final = "DisruptionAllowed"


def _allowed_condition(budget: RawObject) -> dict[str, Any]:
    conditions = budget.get("status", "conditions", default=[])
    found: dict[str, Any] = next(
        (condition for condition in conditions if condition.get("type") == _ALLOWED), {}
    )
    return found


def _exhausted(budget: RawObject, now: datetime) -> RawObject:
    """The budget after its last disruption, saying so."""
    before = _allowed_condition(budget)
    since = before.get("lastTransitionTime") if before.get("status") == "False" else None
    condition = {
        "type": _ALLOWED,
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": _count(budget, "observedGeneration"),
        "lastTransitionTime": since or written_time(now),
    }
    others = [
        other
        for other in budget.get("status", "conditions", default=[])
        if other.get("type") != _ALLOWED
    ]
    return budget.with_value([*others, condition], "status", "conditions")


def _count(budget: RawObject, field: str) -> int:
    value = budget.get("status", field, default=0)
    return value if isinstance(value, int) else 0


def evicted(pod: Pod, now: datetime) -> Pod:
    """The pod as it is written before it is deleted: marked as the target of a disruption."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    return with_condition(pod, condition, now)
