"""The status of a deployment: counts, and the conditions Available, Progressing and ReplicaFailure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from allot.api.raw import RawObject
from allot.api.times import read_time
from allot.controllers.workloads.accessors import (
    Json,
    counted,
    generation_of,
    name_of,
    replicas_of,
)
from allot.controllers.workloads.conditions import (
    ConditionUpdate,
    conditions_of,
    find_condition,
    with_condition,
    without_condition,
)
from allot.controllers.workloads.deployment.sizes import rolling_bounds, total_size

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
REPLICA_FAILURE: Final = "ReplicaFailure"

NEW_SET_CREATED: Final = "NewReplicaSetCreated"
FOUND_NEW_SET: Final = "FoundNewReplicaSet"
SET_UPDATED: Final = "ReplicaSetUpdated"
SET_CREATE_ERROR: Final = "ReplicaSetCreateError"
NEW_SET_AVAILABLE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
RESUMED: Final = "DeploymentResumed"

_NO_DEADLINE: Final = 2**31 - 1
_DATED: Final = ("lastUpdateTime",)


def has_deadline(deployment: RawObject) -> bool:
    return bool(_deadline(deployment))


def _deadline(deployment: RawObject) -> int:
    """`progressDeadlineSeconds`; zero if it is not set."""
    seconds = deployment.get("spec", "progressDeadlineSeconds", default=_NO_DEADLINE)
    return 0 if seconds == _NO_DEADLINE else int(seconds)


def set_condition(
    conditions: Sequence[Json], wanted: ConditionUpdate, now: datetime, *, refresh: bool = False
) -> tuple[Json, ...]:
    return with_condition(conditions, wanted, now, dated=_DATED, refresh=refresh)


# --- counts ---


def deployment_status(
    deployment: RawObject, sets: Sequence[RawObject], new_set: RawObject | None, now: datetime
) -> Json:
    """The counts, and the condition Available."""
    available = sum(counted(found, "availableReplicas") for found in sets)
    least = replicas_of(deployment) - rolling_bounds(deployment).unavailable
    if available >= least:
        condition = ConditionUpdate(
            AVAILABLE,
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )
    else:
        condition = ConditionUpdate(
            AVAILABLE,
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    return {
        "observedGeneration": generation_of(deployment),
        "replicas": sum(counted(found, "replicas") for found in sets) or None,
        "updatedReplicas": (counted(new_set, "replicas") if new_set is not None else 0) or None,
        "readyReplicas": sum(counted(found, "readyReplicas") for found in sets) or None,
        "availableReplicas": available or None,
        "terminatingReplicas": _terminating(sets),
        "unavailableReplicas": max(total_size(sets) - available, 0) or None,
        "conditions": list(set_condition(conditions_of(deployment), condition, now)),
    }


def _terminating(sets: Sequence[RawObject]) -> int | None:
    """The pods that are being deleted; None if a set does not count them."""
    counts = [found.get("status", "terminatingReplicas") for found in sets]
    return None if None in counts else sum(counts)


def is_complete(deployment: RawObject, status: Json) -> bool:
    """Whether all replicas are updated and available, and no others exist."""
    desired = replicas_of(deployment)
    fields = ("updatedReplicas", "replicas", "availableReplicas")
    return all((status.get(field) or 0) == desired for field in fields) and status[
        "observedGeneration"
    ] >= generation_of(deployment)


# --- progress ---


def with_progress(
    deployment: RawObject,
    status: Json,
    sets: Iterable[RawObject],
    new_set: RawObject | None,
    now: datetime,
) -> Json:
    """The status with the condition Progressing updated."""
    conditions = tuple(status["conditions"])
    if not has_deadline(deployment):
        conditions = without_condition(conditions, PROGRESSING)
    elif not _was_complete(status):
        condition = _progress_condition(deployment, status, new_set, now)
        if condition is not None:
            refresh = condition.reason == SET_UPDATED
            conditions = set_condition(conditions, condition, now, refresh=refresh)
    failure = _failure(sets, new_set)
    conditions = without_condition(conditions, REPLICA_FAILURE)
    if failure is not None:
        known = find_condition(conditions_of(deployment), REPLICA_FAILURE)
        before = (known,) if known else ()
        conditions = (*conditions, *set_condition(before, failure, now))
    return {**status, "conditions": list(conditions)}


def _was_complete(status: Json) -> bool:
    """Whether the last rollout was complete, so that only scaling may have followed."""
    known = find_condition(status["conditions"], PROGRESSING)
    return (
        known is not None
        and known.get("reason") == NEW_SET_AVAILABLE
        and status.get("replicas") == status.get("updatedReplicas")
    )


def _progress_condition(
    deployment: RawObject, status: Json, new_set: RawObject | None, now: datetime
) -> ConditionUpdate | None:
    what = f'Deployment "{name_of(deployment)}"'
    if new_set is not None:
        what = f'ReplicaSet "{name_of(new_set)}"'
    if is_complete(deployment, status):
        message = f"{what} has successfully progressed."
        return ConditionUpdate(PROGRESSING, "True", NEW_SET_AVAILABLE, message)
    if _has_moved(deployment, status):
        return ConditionUpdate(PROGRESSING, "True", SET_UPDATED, f"{what} is progressing.")
    if has_timed_out(deployment, status, now):
        return ConditionUpdate(
            PROGRESSING, "False", TIMED_OUT, f"{what} has timed out progressing."
        )
    return None


def _has_moved(deployment: RawObject, status: Json) -> bool:
    """Whether there are more new or fewer old replicas than in the previous status."""

    def now_and_before(field: str) -> tuple[int, int]:
        return status.get(field) or 0, counted(deployment, field)

    total, total_before = now_and_before("replicas")
    updated, updated_before = now_and_before("updatedReplicas")
    ready, ready_before = now_and_before("readyReplicas")
    available, available_before = now_and_before("availableReplicas")
    return (
        updated > updated_before
        or total - updated < total_before - updated_before
        or ready > ready_before
        or available > available_before
    )


def has_timed_out(deployment: RawObject, status: Json, now: datetime) -> bool:
    """Whether the rollout has made no progress within its deadline."""
    known = find_condition(status["conditions"], PROGRESSING)
    if known is None or known.get("reason") == NEW_SET_AVAILABLE:
        return False
    if known.get("reason") == TIMED_OUT:
        return True
    since = read_time(known.get("lastUpdateTime"))
    return since is not None and since + timedelta(seconds=_deadline(deployment)) < now


def seconds_until_timeout(deployment: RawObject, status: Json, now: datetime) -> float | None:
    """Seconds until the progress deadline; None if the rollout is complete or has no deadline."""
    known = find_condition(status["conditions"], PROGRESSING)
    since = read_time(known.get("lastUpdateTime")) if known else None
    if known is None or since is None or not has_deadline(deployment):
        return None
    if known.get("reason") in (NEW_SET_AVAILABLE, TIMED_OUT) or is_complete(deployment, status):
        return None
    return max((since - now).total_seconds() + _deadline(deployment), 0.0) + 1.0


def _failure(sets: Iterable[RawObject], new_set: RawObject | None) -> ConditionUpdate | None:
    """The condition ReplicaFailure of a set; of the new set first."""
    ordered = sorted(sets, key=lambda found: found is not new_set)
    for found in ordered:
        known = find_condition(conditions_of(found), REPLICA_FAILURE)
        if known is not None:
            return ConditionUpdate(
                REPLICA_FAILURE,
                known.get("status", ""),
                known.get("reason", ""),
                known.get("message", ""),
            )
    return None


# --- pausing ---


def pause_condition(deployment: RawObject) -> ConditionUpdate | None:
    """The condition for a pause that began or ended; None if it is set already."""
    if not has_deadline(deployment):
        return None
    known = find_condition(conditions_of(deployment), PROGRESSING)
    reason = known.get("reason") if known else None
    if reason == TIMED_OUT:
        return None
    is_paused = bool(deployment.get("spec", "paused", default=False))
    if is_paused and reason != PAUSED:
        return ConditionUpdate(PROGRESSING, "Unknown", PAUSED, "Deployment is paused")
    if not is_paused and reason == PAUSED:
        return ConditionUpdate(PROGRESSING, "Unknown", RESUMED, "Deployment is resumed")
    return None
