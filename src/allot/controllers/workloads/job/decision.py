"""What to do with a job next: create pods, delete pods, or finish it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.api.times import read_time
from allot.controllers.workloads.accessors import (
    uid_of,
)
from allot.controllers.workloads.conditions import conditions_of, is_true
from allot.controllers.workloads.conditions import find_condition as find
from allot.controllers.workloads.job.failures import seconds_to_wait, seconds_to_wait_for_index
from allot.controllers.workloads.job.indexes import IndexRanges, index_of
from allot.controllers.workloads.job.spec import JobSpec
from allot.controllers.workloads.job.tally import Tally
from allot.controllers.workloads.pod_control import BURST_REPLICAS
from allot.controllers.workloads.pod_ranking import pods_to_delete
from allot.controllers.workloads.pod_states import restarts_of

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"
FAILURE_TARGET: Final = "FailureTarget"
SUSPENDED: Final = "Suspended"


class JobConclusion(NamedTuple):
    """How a job ends, and why."""

    succeeded: bool
    reason: str
    message: str

    @property
    def announced_by(self) -> str:
        """The condition while pods are still terminating."""
        return SUCCESS_CRITERIA_MET if self.succeeded else FAILURE_TARGET

    @property
    def concluded_by(self) -> str:
        return COMPLETE if self.succeeded else FAILED


def is_finished(job: RawObject) -> bool:
    conditions = conditions_of(job)
    return is_true(conditions, COMPLETE) or is_true(conditions, FAILED)


# --- the end ---


def find_conclusion(
    job: RawObject, spec: JobSpec, tally: Tally, now: datetime
) -> JobConclusion | None:
    """How the job ends; None while it continues. An announced conclusion is final."""
    announced = _announced(job)
    if announced is not None:
        return announced
    success = _success_by_policy(spec, tally)
    if success is not None:
        return success
    failure = _failure(job, spec, tally, now)
    if failure is not None:
        return failure
    if _has_enough(spec, tally):
        message = "Reached expected number of succeeded pods"
        return JobConclusion(True, "CompletionsReached", message)
    return None


def _announced(job: RawObject) -> JobConclusion | None:
    for type_, succeeded in ((SUCCESS_CRITERIA_MET, True), (FAILURE_TARGET, False)):
        found = find(conditions_of(job), type_)
        if found is not None and found.get("status") == "True":
            return JobConclusion(succeeded, found.get("reason", ""), found.get("message", ""))
    return None


def _success_by_policy(spec: JobSpec, tally: Tally) -> JobConclusion | None:
    if not spec.is_indexed:
        return None
    for at, rule in enumerate(spec.success_rules):
        named = rule.get("succeededIndexes")
        done = tally.completed_indexes
        if named is not None:
            wanted = IndexRanges(named, spec.completions)
            done = frozenset(index for index in done if index in wanted)
            needed = rule.get("succeededCount", wanted.count)
        else:
            needed = rule.get("succeededCount", spec.completions or 0)
        if needed and len(done) >= needed:
            return JobConclusion(True, "SuccessPolicy", f"Matched rules at index {at}")
    return None


def _failure(job: RawObject, spec: JobSpec, tally: Tally, now: datetime) -> JobConclusion | None:
    if tally.conclusion is not None:
        return JobConclusion(False, "PodFailurePolicy", tally.conclusion.message)
    if tally.failed > spec.backoff_limit or _has_restarted_too_often(spec, tally):
        return JobConclusion(
            False, "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        )
    left = seconds_until_deadline(job, spec, now)
    if left is not None and left <= 0:
        return JobConclusion(
            False, "DeadlineExceeded", "Job was active longer than specified deadline"
        )
    if spec.is_per_index:
        return _failure_of_indexes(spec, tally)
    return None


def _has_restarted_too_often(spec: JobSpec, tally: Tally) -> bool:
    """With OnFailure the kubelet restarts containers; restarts count like failed pods."""
    if not spec.restarts_containers:
        return False
    restarts = sum(restarts_of(pod) for pod in tally.active if pod.phase in ("Pending", "Running"))
    return restarts >= spec.backoff_limit if spec.backoff_limit else restarts > 0


def _failure_of_indexes(spec: JobSpec, tally: Tally) -> JobConclusion | None:
    lost = len(tally.failed_indexes)
    if spec.max_failed_indexes is not None and lost > spec.max_failed_indexes:
        return JobConclusion(
            False,
            "MaxFailedIndexesExceeded",
            "Job has exceeded the specified maximal number of failed indexes",
        )
    if lost and lost + len(tally.completed_indexes) >= (spec.completions or 0):
        return JobConclusion(False, "FailedIndexes", "Job has failed indexes")
    return None


def _has_enough(spec: JobSpec, tally: Tally) -> bool:
    if spec.completions is None:
        return tally.succeeded > 0 and not tally.active and not tally.terminating
    return tally.succeeded >= spec.completions


def seconds_until_deadline(job: RawObject, spec: JobSpec, now: datetime) -> float | None:
    """Seconds until activeDeadlineSeconds; None if it is not set, or the job has not started."""
    began = read_time(job.get("status", "startTime"))
    if spec.active_deadline_seconds is None or spec.is_suspended or began is None:
        return None
    due = began + timedelta(seconds=spec.active_deadline_seconds)
    return (due - now).total_seconds()


# --- pods ---


class JobPlan(NamedTuple):
    """Pods to create (by index, or None for non-indexed jobs), pods to delete, requeue delay."""

    create: tuple[int | None, ...] = ()
    delete: tuple[Pod, ...] = ()
    wait_seconds: float | None = None


def plan_pods(spec: JobSpec, tally: Tally, now: datetime) -> JobPlan:
    """The pods to create or delete for a job that continues."""
    if spec.is_suspended:
        return JobPlan(delete=tally.active)
    wanted = _wanted_active(spec, tally)
    surplus = _misplaced(spec, tally)
    going = set(map(uid_of, surplus))
    others = [pod for pod in tally.active if uid_of(pod) not in going]
    if len(others) > wanted:
        surplus += pods_to_delete(others, len(others) - wanted, others, now)
    if surplus:
        return JobPlan(delete=tuple(surplus[:BURST_REPLICAS]))
    missing = wanted - len(tally.active)
    if spec.replaces_only_failed:
        missing -= tally.terminating
    if missing <= 0:
        return JobPlan()
    return _creation(spec, tally, min(missing, BURST_REPLICAS), now)


def _wanted_active(spec: JobSpec, tally: Tally) -> int:
    if spec.completions is None:
        return len(tally.active) if tally.succeeded else spec.parallelism
    left = spec.completions - tally.succeeded - len(tally.failed_indexes)
    return max(min(left, spec.parallelism), 0)


def _misplaced(spec: JobSpec, tally: Tally) -> list[Pod]:
    """Active pods whose index is invalid, complete, or duplicate; the oldest of duplicates stays."""
    if not spec.is_indexed:
        return []
    over = tally.completed_indexes | tally.failed_indexes
    seen: set[int] = set()
    found = []
    for pod in sorted(tally.active, key=lambda pod: str(pod.get("metadata", "creationTimestamp"))):
        index = index_of(pod)
        if index is None or index >= (spec.completions or 0) or index in over or index in seen:
            found.append(pod)
        else:
            seen.add(index)
    return found


def _creation(spec: JobSpec, tally: Tally, count: int, now: datetime) -> JobPlan:
    if not spec.is_per_index:
        wait = seconds_to_wait(tally.failed_pods, tally.succeeded_pods, now)
        if wait:
            return JobPlan(wait_seconds=wait)
    if not spec.is_indexed:
        return JobPlan(create=(None,) * count)
    free = _free_indexes(spec, tally)
    if not spec.is_per_index:
        return JobPlan(create=tuple(islice(free, count)))
    latest = tally.latest_failed_by_index
    ready: list[int] = []
    waits: list[float] = []
    for index in free:
        wait = seconds_to_wait_for_index(latest[index], now) if index in latest else 0.0
        if wait:
            waits.append(wait)
        else:
            ready.append(index)
            if len(ready) >= count:
                break
    return JobPlan(create=tuple(ready), wait_seconds=min(waits, default=None))


def _free_indexes(spec: JobSpec, tally: Tally) -> Iterator[int]:
    """Indexes without a pod that are not complete, in order. A lazy iterator: there may be very many."""
    taken = {index_of(pod) for pod in tally.active}
    over = tally.completed_indexes | tally.failed_indexes
    for index in range(spec.completions or 0):
        if index not in taken and index not in over:
            yield index
