"""Which job of a CronJob is due, when to look again, and which finished jobs to delete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from allot.api.cron_schedule import Schedule, ScheduleError, parse_schedule
from allot.api.raw import RawObject
from allot.api.times import read_time
from allot.client.resources import CRON_JOBS
from allot.controllers.workloads.accessors import (
    LONG_AGO,
    Json,
    created_at,
    name_of,
    namespace_of,
    uid_of,
)
from allot.controllers.workloads.conditions import conditions_of, is_true
from allot.controllers.workloads.ownership import controller_reference

MAX_MISSED: Final = 100
"""More missed times than this are reported: a clock may be wrong."""
NEXT_DELAY_SECONDS: Final = 0.1
"""After a scheduled time, so that it has passed when it is looked at."""
SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"


class UnusableScheduleError(Exception):
    """The CronJob cannot be scheduled: `reason` and message of the event."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Timetable(NamedTuple):
    """The schedule of a CronJob in its time zone."""

    schedule: Schedule
    zone: tzinfo

    def next_after(self, moment: datetime) -> datetime | None:
        return self.schedule.next_after(moment, self.zone)


def timetable(cron_job: RawObject) -> Timetable:
    """`UnusableScheduleError` if the schedule or the time zone cannot be read. Without a time zone it is UTC."""
    name = cron_job.get("spec", "timeZone", default="")
    try:
        zone: tzinfo = ZoneInfo(name) if name else UTC
    except (KeyError, ValueError, OSError):
        message = f"invalid timeZone: {name}: unknown time zone {name}"
        raise UnusableScheduleError("UnknownTimeZone", message) from None
    text = cron_job.get("spec", "schedule", default="")
    try:
        return Timetable(parse_schedule(text), zone)
    except ScheduleError as error:
        message = f'unparseable schedule: "{text}" : {error}'
        raise UnusableScheduleError("UnparseableSchedule", message) from None


class DueTime(NamedTuple):
    """The latest scheduled time that has not been served; None if all have been."""

    moment: datetime | None
    is_overrun: bool = False
    """Whether more than a hundred times were missed."""


def due_time(cron_job: RawObject, times: Timetable, now: datetime) -> DueTime:
    """Earlier times that were missed as well are skipped: only the latest is served."""
    earliest = read_time(cron_job.get("status", "lastScheduleTime")) or created_at(cron_job)
    deadline = _deadline_seconds(cron_job)
    if deadline is not None:
        earliest = max(earliest, now - timedelta(seconds=deadline))
    missed = 0
    latest: datetime | None = None
    moment = times.next_after(earliest)
    while moment is not None and moment <= now:
        latest = moment
        missed += 1
        if missed > MAX_MISSED:
            return DueTime(_latest_before(times, latest, now), is_overrun=True)
        moment = times.next_after(moment)
    return DueTime(latest)


def _latest_before(times: Timetable, known: datetime, now: datetime) -> datetime:
    """The last scheduled time up to now, found from nearby instead of counting through years."""
    span = timedelta(minutes=1)
    while now - span > known:
        moment = times.next_after(now - span)
        if moment is not None and moment <= now:
            break
        span *= 2
    else:
        moment = known
    while moment is not None and moment <= now:
        known = moment
        moment = times.next_after(moment)
    return known


def is_too_late(cron_job: RawObject, moment: datetime, now: datetime) -> bool:
    deadline = _deadline_seconds(cron_job)
    return deadline is not None and moment + timedelta(seconds=deadline) < now


def _deadline_seconds(cron_job: RawObject) -> int | None:
    seconds = cron_job.get("spec", "startingDeadlineSeconds")
    return seconds if isinstance(seconds, int) else None


def seconds_to_next(times: Timetable, now: datetime) -> float | None:
    """How long to wait for the next scheduled time; None without one."""
    moment = times.next_after(now)
    return None if moment is None else (moment - now).total_seconds() + NEXT_DELAY_SECONDS


# --- jobs ---


def job_name(cron_job: RawObject, moment: datetime) -> str:
    """The name has the minute of its scheduled time, so that no time is served twice."""
    return f"{name_of(cron_job)}-{int(moment.timestamp()) // 60}"


def job_from_template(cron_job: RawObject, moment: datetime, zone: tzinfo) -> RawObject:
    template: Json = cron_job.get("spec", "jobTemplate", default={})
    metadata: Json = template.get("metadata") or {}
    local = moment.astimezone(zone)
    stamp = local.isoformat(timespec="seconds").replace("+00:00", "Z")
    annotations = {**(metadata.get("annotations") or {}), SCHEDULED_AT: stamp}
    return RawObject(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": job_name(cron_job, moment),
                "namespace": namespace_of(cron_job),
                **({"labels": metadata["labels"]} if metadata.get("labels") else {}),
                "annotations": annotations,
                "ownerReferences": [controller_reference(CRON_JOBS, cron_job)],
            },
            "spec": template.get("spec") or {},
        }
    )


def reference_to_job(job: RawObject) -> Json:
    """An entry of `status.active`."""
    return {
        "kind": "Job",
        "namespace": namespace_of(job),
        "name": name_of(job),
        "uid": uid_of(job),
        "apiVersion": "batch/v1",
        "resourceVersion": str(job.get("metadata", "resourceVersion", default="")),
    }


def finished_as(job: RawObject) -> str:
    """`Complete`, `Failed`, or empty if the job has not finished."""
    conditions = conditions_of(job)
    return next((type_ for type_ in ("Complete", "Failed") if is_true(conditions, type_)), "")


def completed_at(job: RawObject) -> datetime | None:
    return read_time(job.get("status", "completionTime"))


def jobs_to_forget(cron_job: RawObject, jobs: Sequence[RawObject]) -> list[RawObject]:
    """Finished jobs above the history limits, the oldest first."""
    return [
        *_oldest(jobs, "Failed", cron_job.get("spec", "failedJobsHistoryLimit")),
        *_oldest(jobs, "Complete", cron_job.get("spec", "successfulJobsHistoryLimit")),
    ]


def _oldest(jobs: Iterable[RawObject], outcome: str, limit: object) -> list[RawObject]:
    if not isinstance(limit, int):
        return []
    found = sorted((job for job in jobs if finished_as(job) == outcome), key=_start)
    return found[: max(len(found) - limit, 0)]


def _start(job: RawObject) -> tuple[datetime, str]:
    return read_time(job.get("status", "startTime")) or LONG_AGO, name_of(job)
