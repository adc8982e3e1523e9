"""The failure handler: pods that fit on no node are post-filtered, get a condition and an event, and are requeued.

unschedulable ─► post_filter, one pod at a time ─► condition and event ─► requeue
    └─ pending on something under way ─► requeue at once; reported only if that takes long
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from allot.client.errors import log_failure
from allot.scheduler.core.decisions import NoNode
from allot.scheduler.core.failure_explainer import FailureExplainer, UnschedulablePod
from allot.scheduler.core.pod_status import UNSCHEDULABLE, PodStatusReporter
from allot.scheduler.core.scheduling_queue import SchedulingQueue
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo, SubQueue
from allot.scheduler.framework.concurrency_limit import ConcurrencyLimit
from allot.scheduler.framework.deadlines import DecisionLimits, NodeTimeLimit
from allot.scheduler.framework.durations import POST_FILTER, Durations
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import Code, Status
from allot.scheduler.state.cluster import ClusterState

log = logging.getLogger(__name__)

PENDING_REPORT_DELAY_SECONDS: Final = 5.0
"""A pod that is pending on something under way gets its condition after this time."""


class FailedAttempt(NamedTuple):
    """An attempt that found no node."""

    profile: Profile
    queued: QueuedPodInfo
    decision: NoNode


class _PendingReport(NamedTuple):
    """A pending pod whose condition is due later."""

    due: float
    """When the condition is written."""
    attempts: int
    rejected: FailedAttempt


class _PostFilterOutcome(NamedTuple):
    """The result of all post_filter plugins."""

    nominated_node: str | None
    message: str


class SchedulerHooks(NamedTuple):
    """What the failure handler needs of the scheduler."""

    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    """Run a coroutine beside the scheduling cycle."""
    handle_scheduling_error: Callable[[QueuedPodInfo, str], Coroutine[Any, Any, None]]
    """Report an attempt that ended in an error, and requeue the pod."""
    reporting: ConcurrencyLimit
    """Limits how many conditions are written at the same time."""


class FailureHandler:
    """Handles attempts that found no node."""

    def __init__(
        self,
        queue: SchedulingQueue,
        cluster: ClusterState,
        outcomes: PodStatusReporter,
        clock: Callable[[], float],
        reasons: FailureExplainer | None,
        limits: DecisionLimits | None,
        beside: SchedulerHooks,
        durations: Mapping[str, Durations],
    ) -> None:
        """`durations` are by scheduler name."""
        self._durations = durations
        self._queue = queue
        self._cluster = cluster
        self._outcomes = outcomes
        self._clock = clock
        self._reasons = reasons
        self._limits = limits
        self._spawn, self._handle_scheduling_error, self._reporting = beside
        self._rejected: deque[FailedAttempt] = deque()
        self._post_filter_task: asyncio.Task[None] | None = None
        self._waiting: deque[_PendingReport] = deque()
        """Pending pods whose condition is due later, in order."""

    def add(self, rejected: FailedAttempt) -> None:
        self._rejected.append(rejected)
        if self._post_filter_task is None or self._post_filter_task.done():
            self._post_filter_task = self._spawn(self._run_post_filters())

    def wait(self, rejected: FailedAttempt) -> None:
        """Requeue a pod that is pending on something under way; report it if no event wakes it soon."""
        decision = rejected.decision
        now = self._clock()
        self._queue.requeue(
            rejected.queued,
            now,
            rejected_by=decision.rejected_by,
            pending_on=decision.pending_on,
        )
        waited = _PendingReport(
            now + PENDING_REPORT_DELAY_SECONDS, rejected.queued.attempts, rejected
        )
        self._waiting.append(waited)
        if len(self._waiting) == 1:
            self._spawn(self._report_long_waits())

    async def _report_long_waits(self) -> None:
        while self._waiting:
            due, attempts, rejected = self._waiting[0]
            await asyncio.sleep(max(due - self._clock(), 0))
            self._waiting.popleft()
            queued = rejected.queued
            if self._is_still_unschedulable(queued, attempts):
                message = rejected.decision.message(len(self._cluster))
                async with self._reporting.slot():
                    await self._outcomes.failed(queued.pod, UNSCHEDULABLE, message)

    def _is_still_unschedulable(self, queued: QueuedPodInfo, attempts: int) -> bool:
        """Whether the pod is unschedulable and has not been tried again since."""
        return (
            queued.pod.uid in self._queue
            and queued.sub_queue is SubQueue.UNSCHEDULABLE
            and queued.attempts == attempts
        )

    async def _run_post_filters(self) -> None:
        """One pod at a time, so that each sees what was done for the pods before it."""
        while self._rejected:
            rejected = self._rejected.popleft()
            if rejected.queued.pod.uid not in self._queue:
                continue  # deleted, or bound by another scheduler
            try:
                result = await self._run_post_filter(rejected)
            except Exception as error:  # noqa: BLE001 - the other pods go on
                log_failure(log, error, "pod %s: post_filter failed", rejected.queued.pod.key)
                self._queue.requeue(rejected.queued, self._clock())
                continue
            if self._reporting.is_exhausted:
                await self._reporting.wait_for_slot()
            self._spawn(self._report(rejected, result))
            await asyncio.sleep(0)

    async def _run_post_filter(self, rejected: FailedAttempt) -> _PostFilterOutcome | Status:
        """Run post_filter until a plugin succeeds; the status of the first error."""
        profile, queued, decision = rejected
        pod = queued.pod
        texts: list[str] = []
        nominated: str | None = None
        if (limits := self._limits) is not None:
            slices = limits.slice_seconds * limits.max_slices
            decision.state.time = NodeTimeLimit(limits.slice_seconds, slices)
        durations, samples = self._durations[profile.scheduler_name], decision.state.samples
        began = started = durations.now()
        code = Code.UNSCHEDULABLE
        for plugin in profile.post_filter if len(self._cluster) else ():
            answer = await plugin.post_filter(decision.state, pod, self._cluster, decision.statuses)
            if samples is not None:
                samples.add(plugin.name, POST_FILTER, answer.status.code, started)
                started = samples.now()
            if answer.status.code is Code.ERROR:
                durations.point(POST_FILTER, Code.ERROR, began)
                return answer.status
            if answer.status.message:
                texts.append(answer.status.message)
            if answer.nominated_node is not None:
                nominated = answer.nominated_node
            if answer.status.is_success:
                code = Code.SUCCESS
                break
        durations.point(POST_FILTER, code, began)
        if nominated is not None and pod.uid in self._queue:
            self._cluster.nominations.put(pod, nominated)
        return _PostFilterOutcome(nominated, ", ".join(texts))

    async def _report(self, rejected: FailedAttempt, room: _PostFilterOutcome | Status) -> None:
        """Write the condition, then requeue the pod."""
        profile, queued, decision = rejected
        if isinstance(room, Status):
            await self._handle_scheduling_error(queued, room.message)
            return
        message, attempts = decision.message(len(self._cluster), room.message), queued.attempts
        more: str | None = decision.statuses.limits_hit
        rejection = UnschedulablePod(profile, queued.pod, decision)
        try:
            async with self._reporting.slot():
                if not more and self._reasons is not None:
                    more = self._reasons.of(rejection)
                await self._outcomes.failed(
                    queued.pod, UNSCHEDULABLE, message, room.nominated_node, more
                )
        finally:
            self._queue.requeue(
                queued,
                self._clock(),
                rejected_by=decision.rejected_by or filter_plugin_names(profile),
                pending_on=decision.pending_on,
                timed_out=bool(decision.statuses.limits_hit),
            )
        if more is None and self._reasons is not None:
            add_reason = partial(self._add_reason, queued, attempts, message)
            if self._reasons.report_later(rejection, add_reason):
                self._spawn(self._reasons.report_all())

    async def _add_reason(
        self, queued: QueuedPodInfo, attempts: int, message: str, reason: str
    ) -> None:
        """Add a reason that was found after the condition was written."""
        if self._is_still_unschedulable(queued, attempts):
            async with self._reporting.slot():
                await self._outcomes.failed(queued.pod, UNSCHEDULABLE, message, more=reason)


def filter_plugin_names(profile: Profile) -> frozenset[str]:
    """The plugins that can reject a pod, for attempts without any node."""
    return frozenset(plugin.name for plugin in profile.filter)
