"""The status of a job in three steps: announced, counted, concluded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.controllers.workloads.accessors import (
    Json,
    counted,
)
from allot.controllers.workloads.conditions import (
    ConditionUpdate,
    conditions_of,
    find_condition,
    is_true,
    with_condition,
)
from allot.controllers.workloads.job.decision import SUSPENDED, JobConclusion
from allot.controllers.workloads.job.indexes import written_indexes
from allot.controllers.workloads.job.spec import JobSpec
from allot.controllers.workloads.job.tally import Tally, Uncounted, uncounted_of


class PodCounts(NamedTuple):
    """The current numbers of pods."""

    active: int
    ready: int
    terminating: int


def set_condition(
    conditions: Sequence[Json], wanted: ConditionUpdate, now: datetime
) -> tuple[Json, ...]:
    return with_condition(conditions, wanted, now, dated=("lastProbeTime",))


def suspension(job: RawObject, spec: JobSpec) -> ConditionUpdate | None:
    """The condition for a suspension that began or ended; None if it is set already."""
    known = find_condition(conditions_of(job), SUSPENDED)
    is_said = known is not None and known.get("status") == "True"
    if spec.is_suspended and not is_said:
        return ConditionUpdate(SUSPENDED, "True", "JobSuspended", "Job suspended")
    if not spec.is_suspended and is_said:
        return ConditionUpdate(SUSPENDED, "False", "JobResumed", "Job resumed")
    return None


def start_time(job: RawObject, spec: JobSpec, now: datetime) -> str | None:
    """`startTime`; reset when the job is resumed."""
    known: str | None = job.get("status", "startTime")
    resumed = not spec.is_suspended and is_true(conditions_of(job), SUSPENDED)
    if resumed or (known is None and not spec.is_suspended):
        return written_time(now)
    return known


def announced_status(
    job: RawObject,
    spec: JobSpec,
    tally: Tally,
    numbers: PodCounts,
    uncounted: Uncounted,
    conclusion: JobConclusion | None,
    now: datetime,
) -> Json:
    """The status before finalizers are removed: with the uids to be counted."""
    conditions = conditions_of(job)
    suspended = suspension(job, spec)
    if suspended is not None and conclusion is None:
        conditions = set_condition(conditions, suspended, now)
    if conclusion is not None:
        announced = ConditionUpdate(
            conclusion.announced_by, "True", conclusion.reason, conclusion.message
        )
        conditions = set_condition(conditions, announced, now)
    status: Json = {
        "startTime": start_time(job, spec, now),
        "active": numbers.active or None,
        "ready": numbers.ready,
        "terminating": numbers.terminating,
        "uncountedTerminatedPods": _written(uncounted),
        "conditions": list(conditions) or None,
    }
    if spec.is_indexed:
        status["completedIndexes"] = written_indexes(tally.completed_indexes) or None
        status["succeeded"] = len(tally.completed_indexes) or None
    if spec.is_per_index:
        status["failedIndexes"] = written_indexes(tally.failed_indexes)
    return status


def counted_status(job: RawObject, spec: JobSpec, freed: Iterable[str]) -> Json:
    """The status after finalizers were removed: these uids are counted."""
    gone = frozenset(freed)
    uncounted = uncounted_of(job)
    left = Uncounted(uncounted.succeeded - gone, uncounted.failed - gone)
    status: Json = {"uncountedTerminatedPods": _written(left)}
    fields = [("failed", uncounted.failed & gone)]
    if not spec.is_indexed:
        fields.append(("succeeded", uncounted.succeeded & gone))
    for field, moved in fields:
        status[field] = (counted(job, field) + len(moved)) or None
    return status


def concluded_status(job: RawObject, conclusion: JobConclusion, now: datetime) -> Json:
    """The final status of a job."""
    condition = ConditionUpdate(
        conclusion.concluded_by, "True", conclusion.reason, conclusion.message
    )
    status: Json = {"conditions": list(set_condition(conditions_of(job), condition, now))}
    if conclusion.succeeded:
        status["completionTime"] = written_time(now)
    return status


def _written(uncounted: Uncounted) -> Json:
    return {
        name: sorted(uids)
        for name, uids in (("succeeded", uncounted.succeeded), ("failed", uncounted.failed))
        if uids
    }
