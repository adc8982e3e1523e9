"""The CronJob controller."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from email.utils import format_datetime
from typing import Final

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.times import read_time, written_time
from allot.client.errors import ApiStatusError, ClientError
from allot.client.events import NORMAL, WARNING, reference_to
from allot.client.options import DeleteOptions
from allot.client.resources import CRON_JOBS, JOBS
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.cron_jobs.decisions import (
    Timetable,
    UnusableScheduleError,
    completed_at,
    due_time,
    finished_as,
    is_too_late,
    job_from_template,
    job_name,
    jobs_to_forget,
    reference_to_job,
    seconds_to_next,
    timetable,
)
from allot.controllers.workloads.accessors import Json, is_deleting, name_of, namespace_of, uid_of
from allot.controllers.workloads.ownership import (
    BY_CONTROLLER,
    controller_of,
    controller_uid,
    is_controlled_by,
)
from allot.controllers.workloads.status_writes import with_status

TOO_MANY_MISSED: Final = (
    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
)


class CronJobController(QueueController[ObjectKey]):
    """Creates jobs at scheduled times, follows them, and deletes old ones."""

    name = "cronjob-controller"
    queue_name = "cronjob"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._recorder = context.recorder
        self._cron_jobs = context.informers.informer(CRON_JOBS)
        self._cron_jobs.add_handlers(self._enqueue, lambda _old, new: self._enqueue(new))
        self._jobs = context.informers.informer(JOBS)
        self._jobs.add_index(BY_CONTROLLER, controller_uid)
        self._jobs.add_handlers(
            self._enqueue_owner, lambda _old, new: self._enqueue_owner(new), self._enqueue_owner
        )

    def _enqueue(self, cron_job: RawObject) -> None:
        self.queue.add(cron_job.key)

    def _enqueue_owner(self, job: RawObject) -> None:
        controller = controller_of(job)
        if controller is not None and controller.is_of(CRON_JOBS):
            self.queue.add(ObjectKey(namespace_of(job), controller.name))

    async def reconcile(self, key: ObjectKey) -> None:
        cron_job = self._cron_jobs.get(key)
        if cron_job is None:
            return
        jobs = self._jobs.by_index(BY_CONTROLLER, uid_of(cron_job))
        current = await self._with_job_states(cron_job, jobs)
        if not is_deleting(cron_job):
            try:
                current = await self._schedule(current)
            finally:
                await self._forget_jobs(cron_job, jobs)
        await self._write(cron_job, current)

    # --- jobs that exist ---

    async def _with_job_states(self, cron_job: RawObject, jobs: Sequence[RawObject]) -> RawObject:
        """The CronJob with the active jobs and the last success as the jobs say."""
        active: list[Json] = cron_job.get("status", "active", default=[])
        by_uid = {uid_of(job): job for job in jobs}
        kept: list[Json] = []
        for reference in active:
            job = by_uid.get(reference.get("uid", ""))
            if job is None:
                if await self._is_gone(cron_job, reference):
                    self._record_event(
                        cron_job,
                        NORMAL,
                        "MissingJob",
                        f"Active job went missing: {reference.get('name', '')}",
                    )
                    continue
            elif outcome := finished_as(job):
                note = f"Saw completed job: {name_of(job)}, condition: {outcome}"
                self._record_event(cron_job, NORMAL, "SawCompletedJob", note)
                continue
            kept.append(reference)
        last = self._last_success(cron_job, jobs)
        return with_status(cron_job, {"active": kept or None, "lastSuccessfulTime": last})

    async def _is_gone(self, cron_job: RawObject, reference: Json) -> bool:
        """A live check: the informer may not have the job yet."""
        key = ObjectKey(namespace_of(cron_job), reference.get("name", ""))
        found = await self.client.find(JOBS, key)
        return found is None or uid_of(found) != reference.get("uid")

    def _last_success(self, cron_job: RawObject, jobs: Sequence[RawObject]) -> str | None:
        known = read_time(cron_job.get("status", "lastSuccessfulTime"))
        moments = [completed_at(job) for job in jobs if finished_as(job) == "Complete"]
        latest = max([moment for moment in (*moments, known) if moment is not None], default=None)
        return written_time(latest) if latest is not None else None

    async def _forget_jobs(self, cron_job: RawObject, jobs: Sequence[RawObject]) -> None:
        for job in jobs_to_forget(cron_job, jobs):
            if not is_deleting(job):
                await self._delete(cron_job, job)

    async def _delete(self, cron_job: RawObject, job: RawObject) -> None:
        options = DeleteOptions(uid_of(job), propagation_policy="Background")
        try:
            await self.client.delete(JOBS, job.key, options)
        except ApiStatusError as error:
            if error.is_not_found or error.is_conflict:
                return
            self._record_event(cron_job, WARNING, "FailedDelete", f"Deleted job: {error}")
            raise
        self._record_event(cron_job, NORMAL, "SuccessfulDelete", f"Deleted job {name_of(job)}")

    # --- the next job ---

    async def _schedule(self, cron_job: RawObject) -> RawObject:
        """The CronJob with the job that is due, if there is one."""
        if cron_job.get("spec", "suspend"):
            return cron_job
        try:
            times = timetable(cron_job)
        except UnusableScheduleError as error:
            self._record_event(cron_job, WARNING, error.reason, str(error))
            return cron_job  # until it is changed
        now = self.clock.today()
        due = due_time(cron_job, times, now)
        if due.is_overrun:
            self._record_event(cron_job, WARNING, "TooManyMissedTimes", TOO_MANY_MISSED)
        started = cron_job
        if due.moment is not None:
            started = await self._start(cron_job, times, due.moment, now)
        wait = seconds_to_next(times, self.clock.today())
        if wait is not None:
            self.queue.add_after(cron_job.key, wait)
        return started

    async def _start(
        self, cron_job: RawObject, times: Timetable, moment: datetime, now: datetime
    ) -> RawObject:
        if is_too_late(cron_job, moment, now):
            note = f"Missed scheduled time to start a job: {format_datetime(moment)}"
            self._record_event(cron_job, WARNING, "MissSchedule", note)
            return cron_job
        active: list[Json] = cron_job.get("status", "active", default=[])
        name = job_name(cron_job, moment)
        if any(reference.get("name") == name for reference in active):
            return cron_job
        match cron_job.get("spec", "concurrencyPolicy"):
            case "Forbid" if active:
                self._record_event(
                    cron_job,
                    NORMAL,
                    "JobAlreadyActive",
                    "Not starting job because prior execution is running and concurrency policy is"
                    " Forbid",
                )
                return cron_job
            case "Replace":
                await self._replace(cron_job, active)
                active = []
        job = await self._create(cron_job, job_from_template(cron_job, moment, times.zone))
        if job is None:
            return cron_job
        return with_status(
            cron_job,
            {
                "active": [*active, reference_to_job(job)],
                "lastScheduleTime": written_time(moment),
            },
        )

    async def _replace(self, cron_job: RawObject, active: Sequence[Json]) -> None:
        for reference in active:
            key = ObjectKey(namespace_of(cron_job), reference.get("name", ""))
            job = await self.client.find(JOBS, key)
            if job is not None and uid_of(job) == reference.get("uid"):
                await self._delete(cron_job, job)

    async def _create(self, cron_job: RawObject, job: RawObject) -> RawObject | None:
        """The created job, or the one that an earlier attempt created; None if another owner has the name."""
        try:
            created = await self.client.create(JOBS, job)
        except ApiStatusError as error:
            if error.is_namespace_terminating:
                return None
            if error.is_already_exists:
                found = await self.client.find(JOBS, job.key)
                return found if found is not None and is_controlled_by(found, cron_job) else None
            self._record_event(cron_job, WARNING, "FailedCreate", f"Error creating job: {error}")
            raise
        except ClientError as error:
            self._record_event(cron_job, WARNING, "FailedCreate", f"Error creating job: {error}")
            raise
        self._record_event(cron_job, NORMAL, "SuccessfulCreate", f"Created job {name_of(created)}")
        return created

    # --- writes ---

    async def _write(self, before: RawObject, after: RawObject) -> None:
        if after.get("status") == before.get("status"):
            return
        try:
            await self.client.update_status(CRON_JOBS, after)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise

    def _record_event(self, cron_job: RawObject, type_: str, reason: str, note: str) -> None:
        self._recorder.event(reference_to(CRON_JOBS, cron_job), type_, reason, reason, note)
