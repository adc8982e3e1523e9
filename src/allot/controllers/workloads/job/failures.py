"""The pod failure policy, and the backoff after failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, NamedTuple

from allot.api.core import Pod
from allot.api.times import read_time
from allot.backoff import Backoff
from allot.controllers.workloads.accessors import (
    Json,
    annotations_of,
    created_at,
    name_of,
    namespace_of,
)
from allot.controllers.workloads.conditions import conditions_of, find_condition

INDEX_FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-failure-count"
FAILURE_BACKOFF: Final = Backoff(initial_seconds=10.0, max_seconds=600.0)


class PodFailureAction(Enum):
    """The action of a rule of the pod failure policy."""

    COUNT = "Count"
    IGNORE = "Ignore"
    FAIL_JOB = "FailJob"
    FAIL_INDEX = "FailIndex"


class PodFailureMatch(NamedTuple):
    """The action, and for FailJob the message."""

    action: PodFailureAction
    message: str = ""


def match_pod_failure_policy(pod: Pod, rules: Sequence[Json]) -> PodFailureMatch:
    """The first matching rule applies; without one, the failure counts."""
    if pod.phase != "Failed":  # terminating: its exit codes are not known yet
        return PodFailureMatch(PodFailureAction.COUNT)
    for index, rule in enumerate(rules):
        why = _why_exit_codes(pod, rule) or _why_conditions(pod, rule)
        if why:
            action = rule.get("action", "")
            known = action in {member.value for member in PodFailureAction}
            message = f"{why} matching {action} rule at index {index}"
            return PodFailureMatch(
                PodFailureAction(action) if known else PodFailureAction.COUNT, message
            )
    return PodFailureMatch(PodFailureAction.COUNT)


def _why_exit_codes(pod: Pod, rule: Json) -> str:
    wanted = rule.get("onExitCodes")
    if not wanted:
        return ""
    values = wanted.get("values") or ()
    for container, code in _failed_containers(pod):
        if wanted.get("containerName") not in (None, container):
            continue
        if (code in values) == (wanted.get("operator") == "In"):
            where = f"{namespace_of(pod)}/{name_of(pod)}"
            return f"Container {container} for pod {where} failed with exit code {code}"
    return ""


def _failed_containers(pod: Pod) -> Iterator[tuple[str, int]]:
    for field in ("containerStatuses", "initContainerStatuses"):
        for status in pod.get("status", field, default=()):
            code = ((status.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
            if code:
                yield status.get("name", ""), code


def _why_conditions(pod: Pod, rule: Json) -> str:
    for pattern in rule.get("onPodConditions") or ():
        found = find_condition(conditions_of(pod), pattern.get("type", ""))
        if found is not None and found.get("status") == pattern.get("status", "True"):
            return f"Pod {namespace_of(pod)}/{name_of(pod)} has condition {pattern['type']}"
    return ""


# --- backoff ---


def finished_at(pod: Pod) -> datetime:
    """When its last container terminated; for a pod that never ran, when it was deleted or changed."""
    ends = [
        read_time(((status.get("state") or {}).get("terminated") or {}).get("finishedAt"))
        for status in pod.get("status", "containerStatuses", default=())
    ]
    known = [end for end in ends if end is not None]
    if known:
        return max(known)
    ready = find_condition(conditions_of(pod), "Ready")
    for text in (
        pod.get("metadata", "deletionTimestamp"),
        ready.get("lastTransitionTime") if ready else None,
    ):
        moment = read_time(text)
        if moment is not None:
            return moment
    return created_at(pod)


def seconds_to_wait(failed: Iterable[Pod], succeeded: Iterable[Pod], now: datetime) -> float:
    """The backoff before the next pod, from the finished pods: a success resets it."""
    last_success = max(map(finished_at, succeeded), default=None)
    ends = [finished_at(pod) for pod in failed]
    if last_success is not None:
        ends = [end for end in ends if end > last_success]
    if not ends:
        return 0.0
    return _left(max(ends), len(ends), now)


def seconds_to_wait_for_index(failed: Pod, now: datetime) -> float:
    """The backoff of one index; its last failed pod has the failure count."""
    return _left(finished_at(failed), failures_before(failed) + 1, now)


def _left(end: datetime, failures: int, now: datetime) -> float:
    due = end + timedelta(seconds=FAILURE_BACKOFF.seconds(failures))
    return max((due - now).total_seconds(), 0.0)


def failures_before(pod: Pod) -> int:
    """How many pods of its index had failed when it was created."""
    text = annotations_of(pod).get(INDEX_FAILURE_COUNT, "")
    return int(text) if text.isascii() and text.isdigit() else 0
