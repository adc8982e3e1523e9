"""Deletes finished jobs after their TTL (`spec.ttlSecondsAfterFinished`)."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.errors import ApiStatusError
from allot.client.options import DeleteOptions
from allot.client.resources import JOBS
from allot.controllers.controller import ControllerContext, QueueController

log = logging.getLogger(__name__)


def expires_at(job: RawObject) -> datetime | None:
    """When to delete the job; None if it has not finished, is being deleted, or has no TTL."""
    seconds = job.get("spec", "ttlSecondsAfterFinished")
    if not isinstance(seconds, int) or job.metadata.deletion_timestamp is not None:
        return None
    finished = finished_at(job)
    return finished + timedelta(seconds=seconds) if finished is not None else None


def finished_at(job: RawObject) -> datetime | None:
    return job.true_since("Complete") or job.true_since("Failed")


class TtlAfterFinishedController(QueueController[ObjectKey]):
    """Deletes expired jobs and their dependents."""

    name = "ttl-after-finished-controller"
    queue_name = "ttl_jobs_to_delete"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._jobs = context.informers.informer(JOBS)
        self._jobs.add_handlers(on_add=self._look_at, on_update=lambda _, new: self._look_at(new))

    def _look_at(self, job: RawObject) -> None:
        expiry = expires_at(job)
        if expiry is not None:
            self.queue.add_after(job.key, (expiry - self.clock.today()).total_seconds())

    async def reconcile(self, key: ObjectKey) -> None:
        if self._jobs.get(key) is None:
            return
        job = await self.client.find(JOBS, key)  # the informer may be outdated
        expiry = expires_at(job) if job is not None else None
        if job is None or expiry is None:
            return
        wait = (expiry - self.clock.today()).total_seconds()
        if wait > 0:
            self.queue.add_after(key, wait)
            return
        log.info("job %s: TTL after finished has expired, deleting", key)
        options = DeleteOptions(job.metadata.uid, propagation_policy="Foreground")
        try:
            await self.client.delete(JOBS, key, options)
        except ApiStatusError as error:
            if not (error.is_not_found or error.is_conflict):
                raise
