"""The status of a PodDisruptionBudget, from its pods and the number of pods that there should be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.api.times import read_time, written_time
from allot.controllers.pod_disruption import DISRUPTION_TARGET
from allot.controllers.workloads.accessors import Json, generation_of, is_deleting, name_of
from allot.controllers.workloads.conditions import conditions_of, find_condition
from allot.controllers.workloads.int_or_percent import resolve
from allot.controllers.workloads.pod_states import is_ready

DELETION_TIMEOUT: Final = timedelta(minutes=2)
"""An evicted pod that still exists after this time counts as healthy again."""
STALE_CONDITION_TIMEOUT: Final = timedelta(minutes=2)
"""A pod that is not deleted this long after it was to be disrupted is no longer a target."""

DISRUPTION_ALLOWED: Final = "DisruptionAllowed"
SUFFICIENT_PODS: Final = "SufficientPods"
INSUFFICIENT_PODS: Final = "InsufficientPods"
SYNC_FAILED: Final = "SyncFailed"


class PodCounts(NamedTuple):
    """How many pods there should be, and how many of them have to be healthy."""

    expected: int
    desired_healthy: int


def needs_scale(budget: RawObject) -> bool:
    """Whether the budget is relative to the number of replicas that the pods' owners want."""
    if budget.get("spec", "maxUnavailable") is not None:
        return True
    return isinstance(budget.get("spec", "minAvailable"), str)


def pod_counts(budget: RawObject, expected: int) -> PodCounts:
    """`expected` is the number of replicas that the owners want, or of the pods that exist."""
    most_away = budget.get("spec", "maxUnavailable")
    if most_away is not None:
        away = resolve(most_away, expected, round_up=True)
        return PodCounts(expected, max(expected - away, 0))
    fewest = budget.get("spec", "minAvailable")
    if fewest is None:
        return PodCounts(expected, 0)
    return PodCounts(expected, resolve(fewest, expected, round_up=True))


class DisruptedPods(NamedTuple):
    """Evicted pods that have not begun to terminate yet."""

    since: Mapping[str, str]
    """Names, and when they were evicted, as in the status."""
    not_deleted: tuple[Pod, ...] = ()
    """Pods that were evicted and stayed."""
    recheck_at: datetime | None = None


def disrupted_pods(budget: RawObject, pods: Iterable[Pod], now: datetime) -> DisruptedPods:
    """What remains of `status.disruptedPods`. Pods that terminate are no longer waited for."""
    evicted: Mapping[str, str] = budget.get("status", "disruptedPods", default={})
    since: dict[str, str] = {}
    stayed: list[Pod] = []
    expiries: list[datetime] = []
    for pod in pods if evicted else ():
        name = name_of(pod)
        moment = read_time(evicted.get(name))
        if is_deleting(pod) or moment is None:
            continue
        if moment + DELETION_TIMEOUT < now:
            stayed.append(pod)
        else:
            since[name] = evicted[name]
            expiries.append(moment + DELETION_TIMEOUT)
    return DisruptedPods(since, tuple(stayed), min(expiries, default=None))


def healthy_pods(pods: Iterable[Pod], disrupted: Mapping[str, str]) -> int:
    """The ready pods that are neither terminating nor just evicted."""
    return sum(
        is_ready(pod) for pod in pods if not is_deleting(pod) and name_of(pod) not in disrupted
    )


def budget_status(
    budget: RawObject,
    pods: Sequence[Pod],
    counts: PodCounts,
    disrupted: DisruptedPods,
    now: datetime,
) -> Json:
    healthy = healthy_pods(pods, disrupted.since)
    allowed = max(healthy - counts.desired_healthy, 0) if counts.expected > 0 else 0
    reason = SUFFICIENT_PODS if allowed else INSUFFICIENT_PODS
    return {
        "currentHealthy": healthy,
        "desiredHealthy": counts.desired_healthy,
        "expectedPods": counts.expected,
        "disruptionsAllowed": allowed,
        "disruptedPods": dict(disrupted.since) or None,
        "observedGeneration": generation_of(budget),
        "conditions": _with_allowed(budget, reason, "", now),
    }


def failed_status(budget: RawObject, message: str, now: datetime) -> Json:
    """No evictions while the number of pods cannot be determined."""
    return {
        "disruptionsAllowed": 0,
        "observedGeneration": generation_of(budget),
        "conditions": _with_allowed(budget, SYNC_FAILED, message, now),
    }


def _with_allowed(budget: RawObject, reason: str, message: str, now: datetime) -> list[Json]:
    conditions = conditions_of(budget)
    status = str(reason == SUFFICIENT_PODS)
    known = find_condition(conditions, DISRUPTION_ALLOWED) or {}
    is_same = known.get("status") == status
    made: Json = {
        "type": DISRUPTION_ALLOWED,
        "status": status,
        "observedGeneration": generation_of(budget),
        "lastTransitionTime": known["lastTransitionTime"] if is_same else written_time(now),
        "reason": reason,
        "message": message,
    }
    if not known:
        return [*conditions, made]
    return [made if found is known else found for found in conditions]


# --- targets that stayed ---

KEPT_REASONS: Final = ("TerminationByKubelet",)
"""Set by kubelets, which may take any time to end the pod."""


def stale_at(pod: Pod) -> datetime | None:
    """When the condition DisruptionTarget of a pod that is not deleted becomes stale; None if it never does."""
    condition = pod.condition(DISRUPTION_TARGET)
    if condition is None or condition.get("status") != "True" or is_deleting(pod):
        return None
    if pod.is_finished or condition.get("reason") in KEPT_REASONS:
        return None
    since = read_time(condition.get("lastTransitionTime"))
    return since + STALE_CONDITION_TIMEOUT if since is not None else None
