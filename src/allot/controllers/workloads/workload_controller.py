"""The base class of workload controllers."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar, Final

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.errors import ApiStatusError
from allot.client.events import NORMAL, reference_to
from allot.client.resources import PODS, Resource
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.workloads.accessors import min_ready_seconds_of
from allot.controllers.workloads.expectations import Expectations
from allot.controllers.workloads.pod_control import CreationRateLimiter, PodControl
from allot.controllers.workloads.pod_states import seconds_until_available

log = logging.getLogger(__name__)

STALE_SECONDS: Final = 0.05
"""Requeue delay after a conflict; the informer normally has the newer version by then."""


class WorkloadController(QueueController[ObjectKey]):
    """Syncs workloads of one kind by key. Conflicts are retried without a warning."""

    resource: ClassVar[Resource[RawObject]]

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.informers = context.informers
        self.recorder = context.recorder
        self.expectations = Expectations(self.clock)
        self.creation_pace = CreationRateLimiter(self.clock.now, self.queue.add_after)
        self.pod_control = PodControl(
            self.client, self.recorder, self.resource, self.expectations, self.creation_pace
        )
        self.workloads = self.informers.informer(self.resource)
        self.pods = self.informers.informer(PODS)
        self.workloads.add_handlers(
            self._enqueue, lambda _old, new: self._enqueue(new), self._workload_deleted
        )

    def _enqueue(self, workload: RawObject) -> None:
        self.queue.add(workload.key)

    def _workload_deleted(self, workload: RawObject) -> None:
        self.expectations.forget(workload.key)
        self.queue.add(workload.key)

    async def reconcile(self, key: ObjectKey) -> None:
        workload = self.workloads.get(key)
        if workload is None:
            await self.clean_up(key)
            return
        try:
            await self.sync(workload)
        except ApiStatusError as error:
            if error.is_namespace_terminating:
                return  # nothing can be created there, and the workload is deleted too
            if not error.is_conflict:
                raise
            log.debug("%s %s: %s; retrying", self.resource.kind, key, error)
            self.queue.add_after(key, STALE_SECONDS)

    @abstractmethod
    async def sync(self, workload: RawObject) -> None:
        """Compare the spec with the dependents, write changes and the status."""

    async def clean_up(self, key: ObjectKey) -> None:
        """The workload is gone. The garbage collector deletes its dependents."""

    def today(self) -> datetime:
        return self.clock.today()

    def expectations_satisfied(self, key: ObjectKey) -> bool:
        """Whether the informer has delivered all writes. If not, the key is queued for the timeout."""
        wait = self.expectations.seconds_left(key)
        if wait:
            self.queue.add_after(key, wait)
        return not wait

    def requeue_when_available(
        self, workload: RawObject, pods: Iterable[Pod], now: datetime
    ) -> None:
        """Queue the workload for the time when the next of its ready pods counts as available."""
        wait = seconds_until_available(pods, min_ready_seconds_of(workload), now)
        if wait is not None:
            self.queue.add_after(workload.key, wait)

    def record_event(
        self, workload: RawObject, reason: str, note: str, type_: str = NORMAL
    ) -> None:
        self.recorder.event(reference_to(self.resource, workload), type_, reason, reason, note)
