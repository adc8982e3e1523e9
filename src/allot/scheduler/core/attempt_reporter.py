"""Reports of attempts that failed for another reason than that no node fits: condition first, then the queue.

`failure_handler` handles pods that fit on no node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from allot.scheduler.core.background_decisions import slow_plugins
from allot.scheduler.core.pod_status import SCHEDULER_ERROR, UNSCHEDULABLE, PodStatusReporter
from allot.scheduler.core.scheduling_queue import SchedulingQueue
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo
from allot.scheduler.framework.concurrency_limit import ConcurrencyLimit
from allot.scheduler.framework.fit_errors import no_node_fits
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import Status
from allot.scheduler.state.cluster import ClusterState

MAX_REPORTS: Final = 16
"""Conditions that are written at the same time."""


class AttemptReporter:
    """Writes the condition of a failed attempt, and requeues the pod."""

    def __init__(
        self,
        queue: SchedulingQueue,
        cluster: ClusterState,
        pod_status: PodStatusReporter,
        clock: Callable[[], float],
    ) -> None:
        self._queue = queue
        self._cluster = cluster
        self._pod_status = pod_status
        self._clock = clock
        self.reporting = ConcurrencyLimit(MAX_REPORTS)

    async def handle_scheduling_error(
        self, queued: QueuedPodInfo, message: str, more: str | None = "", nominated_node: str = ""
    ) -> None:
        """Write the condition of an attempt that ended in an error, and requeue the pod with backoff.

        `more` is appended to the message. The pod stays nominated to `nominated_node`, if given.
        """
        self._cluster.nominations.put(queued.pod, nominated_node)
        try:
            async with self.reporting.slot():
                await self._pod_status.failed(
                    queued.pod, SCHEDULER_ERROR, message, nominated_node, more
                )
        finally:
            self._queue.requeue(queued, self._clock())

    async def handle_rejection(self, queued: QueuedPodInfo, status: Status) -> None:
        """A plugin rejected the chosen node: the pod is unschedulable until an event of that plugin."""
        message = no_node_fits(1, (status,))
        try:
            async with self.reporting.slot():
                await self._pod_status.failed(queued.pod, UNSCHEDULABLE, message)
        finally:
            self._queue.requeue(queued, self._clock(), rejected_by=(status.plugin,))

    async def handle_timeout(
        self, profile: Profile, queued: QueuedPodInfo, limit_seconds: float, why: str
    ) -> None:
        """The attempt ran into its time limit: the pod is also retried without an event, with backoff."""
        message = no_node_fits(len(self._cluster), ())
        message += f" the decision ran into its limit of {limit_seconds:g} s: {why}"
        try:
            async with self.reporting.slot():
                await self._pod_status.failed(queued.pod, UNSCHEDULABLE, message)
        finally:
            rejected_by = [plugin.name for plugin in slow_plugins(profile)]
            self._queue.requeue(queued, self._clock(), rejected_by=rejected_by, timed_out=True)
