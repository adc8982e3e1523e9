"""Pods that no node takes: room is made for them if possible, they are told why, and wait in the queue.

rejected ─► post_filter, one pod after the other ─► condition and event ─► back to the queue
    └─ what it lacks is under way ─► back to the queue at once; told only if that takes long
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from allot.client.errors import log_failure
from allot.scheduler.core.failure_explainer import FailureExplainer, UnschedulablePod
from allot.scheduler.core.pod_status import UNSCHEDULABLE, PodStatusReporter
from allot.scheduler.core.scheduling_cycle import NoNode
from allot.scheduler.core.scheduling_queue import SchedulingQueue
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo, SubQueue
from allot.scheduler.framework.concurrency_limit import ConcurrencyLimit
from allot.scheduler.framework.deadlines import DecisionLimits, NodeTimeLimit
from allot.scheduler.framework.durations import POST_FILTER, Durations
from allot.scheduler.framework.fit_errors import NO_NODES, no_node_fits
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import Code, Status
from allot.scheduler.state.cluster import ClusterState

log = logging.getLogger(__name__)

PENDING_REPORT_DELAY_SECONDS: Final = 5.0
"""A pod that waits for something that is under way is told so when it has waited so long."""


class FailedAttempt(NamedTuple):
    """A pod that no node takes, for now."""

    profile: Profile
    queued: QueuedPodInfo
    decision: NoNode


class _PendingReport(NamedTuple):
    """A pod that waits for something that is under way."""

    due: float
    """When it is told so."""
    attempts: int
    rejected: FailedAttempt


class _PostFilterOutcome(NamedTuple):
    """What was done for a pod that fits nowhere."""

    nominated_node: str | None
    message: str


class SchedulerHooks(NamedTuple):
    """What the scheduler does for others."""

    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    """Do something beside the next decision."""
    wake: Callable[[], None]
    """Something may have come into the queue."""
    handle_scheduling_error: Callable[[QueuedPodInfo, str], Coroutine[Any, Any, None]]
    """An attempt ended in an error."""
    reporting: ConcurrencyLimit
    """How many pods are told at the same time."""


class FailureHandler:
    """What becomes of pods for which there is no node."""

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
        """`durations` are those of the profiles, by their scheduler's name."""
        self._durations = durations
        self._queue = queue
        self._cluster = cluster
        self._outcomes = outcomes
        self._clock = clock
        self._reasons = reasons
        self._limits = limits
        self._spawn, self._wake, self._handle_scheduling_error, self._reporting = beside
        self._rejected: deque[FailedAttempt] = deque()
        self._post_filter_task: asyncio.Task[None] | None = None
        self._waiting: deque[_PendingReport] = deque()
        """Pods that wait for something that is under way, and when they are told so."""

    def add(self, rejected: FailedAttempt) -> None:
        self._rejected.append(rejected)
        if self._post_filter_task is None or self._post_filter_task.done():
            self._post_filter_task = self._spawn(self._run_post_filters())

    def wait(self, rejected: FailedAttempt) -> None:
        """What the pod lacks is under way, so that an event will wake it in a moment. If not, it is told why it waits."""
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
                message = self._summary(rejected.decision)
                async with self._reporting.slot():
                    await self._outcomes.failed(queued.pod, UNSCHEDULABLE, message)

    def _is_still_unschedulable(self, queued: QueuedPodInfo, attempts: int) -> bool:
        """Whether the pod has not been tried again since."""
        return (
            queued.pod.uid in self._queue
            and queued.sub_queue is SubQueue.UNSCHEDULABLE
            and queued.attempts == attempts
        )

    async def _run_post_filters(self) -> None:
        """One after the other, so that what is done for one pod is seen when the next one's turn comes."""
        while self._rejected:
            rejected = self._rejected.popleft()
            if rejected.queued.pod.uid not in self._queue:
                continue  # it is gone, or another scheduler was quicker
            try:
                result = await self._run_post_filter(rejected)
            except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
                log_failure(
                    log, error, "pod %s: making room for it failed", rejected.queued.pod.key
                )
                self._queue.requeue(rejected.queued, self._clock())
                self._wake()
                continue
            if self._reporting.is_exhausted:
                await self._reporting.wait_for_slot()
            self._spawn(self._report(rejected, result))
            await asyncio.sleep(0)

    async def _run_post_filter(self, rejected: FailedAttempt) -> _PostFilterOutcome | Status:
        """What plugins did so that the pod may fit later, or the error that stopped them."""
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
        """Say why the pod has no node, and only then let it be tried again."""
        profile, queued, decision = rejected
        if isinstance(room, Status):
            await self._handle_scheduling_error(queued, room.message)
            return
        message, attempts = self._summary(decision, room.message), queued.attempts
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
            self._wake()
        if more is None and self._reasons is not None:
            tell = partial(self._tell, queued, attempts, message)
            if self._reasons.report_later(rejection, tell):
                self._spawn(self._reasons.report_all())

    def _summary(self, decision: NoNode, post_filter_message: str = "") -> str:
        total = len(self._cluster)
        if not total:
            return NO_NODES
        return no_node_fits(
            total,
            (),
            pre_filter_message=decision.pre_filter_message or decision.statuses.reasons,
            post_filter_message=post_filter_message,
        )

    async def _tell(self, queued: QueuedPodInfo, attempts: int, message: str, reason: str) -> None:
        """A reason that was found out after the pod was told that no node takes it."""
        if self._is_still_unschedulable(queued, attempts):
            async with self._reporting.slot():
                await self._outcomes.failed(queued.pod, UNSCHEDULABLE, message, more=reason)


def filter_plugin_names(profile: Profile) -> frozenset[str]:
    """All plugins that could reject a pod: there were no nodes to ask them about."""
    return frozenset(plugin.name for plugin in profile.filter)
