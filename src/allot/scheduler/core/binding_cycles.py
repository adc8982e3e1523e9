"""Binding cycles of all pods: each runs beside the next scheduling cycles, until the pod is bound or unreserved.

`binding_cycle` runs the extension points of one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from allot.client.errors import log_failure
from allot.scheduler.core.attempt_reporter import AttemptReporter
from allot.scheduler.core.binding_cycle import run_post_bind, run_pre_bind_and_bind
from allot.scheduler.core.pod_status import PodStatusReporter
from allot.scheduler.core.scheduling_queue import SchedulingQueue
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo
from allot.scheduler.framework.bind_errors import (
    BoundElsewhereError,
    KeepsNominationError,
    UnknownBindingError,
)
from allot.scheduler.framework.concurrency_limit import ConcurrencyLimit
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.durations import Durations
from allot.scheduler.framework.events import ASSIGNED_POD, Action, ClusterEvent
from allot.scheduler.framework.metrics import SchedulerMetrics
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import Status, failed
from allot.scheduler.framework.waiting_pods import WaitingPod, WaitingPods
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.pods import PodInfo

log = logging.getLogger(__name__)

MAX_BINDINGS: Final = 100
"""Pods that are bound at the same time. Pods that only wait for devices or volumes do not count."""


class _BindingCycle(NamedTuple):
    """A binding cycle that runs."""

    task: asyncio.Task[None]
    profile: Profile
    state: CycleState
    pod: PodInfo
    node_name: str
    started: float


class BindingCycles:
    """Starts, cancels and ends binding cycles."""

    def __init__(
        self,
        queue: SchedulingQueue,
        cluster: ClusterState,
        pod_status: PodStatusReporter,
        metrics: SchedulerMetrics,
        clock: Callable[[], float],
        durations: Mapping[str, Durations],
        waiting_pods: WaitingPods,
        reporter: AttemptReporter,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        """`durations` are by scheduler name; `spawn` runs a coroutine beside the scheduling cycle."""
        self._queue = queue
        self._cluster = cluster
        self._pod_status = pod_status
        self._metrics = metrics
        self._clock = clock
        self._durations = durations
        self._waiting_pods = waiting_pods
        self._reporter = reporter
        self._spawn = spawn
        self.limit = ConcurrencyLimit(MAX_BINDINGS)
        self.begun = 0
        """How many binding cycles were started."""
        self._running: dict[str, _BindingCycle] = {}
        """Binding cycles that run, by uid of the pod."""

    def start(
        self,
        profile: Profile,
        state: CycleState,
        queued: QueuedPodInfo,
        node_name: str,
        started: float,
        waiting: WaitingPod | None,
    ) -> None:
        """Bind a reserved pod, after `waiting` if a permit plugin said WAIT."""
        task = self._spawn(self._bind(profile, state, queued, node_name, started, waiting))
        cycle = _BindingCycle(task, profile, state, queued.pod, node_name, started)
        self._running[queued.pod.uid] = cycle
        self.begun += 1

    def stop(self, uid: str) -> bool:
        """Cancel the binding of a deleted pod; False if it is not being bound."""
        cycle = self._running.pop(uid, None)
        if cycle is None or cycle.task.done():
            return False
        # A task that is cancelled before its first step runs no code of its own: so this is a callback.
        cycle.task.add_done_callback(partial(self._cancelled, cycle))
        cycle.task.cancel()
        return True

    def unreserve(self, profile: Profile, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo reserve and assume, and tell the queue that the node has room again."""
        for plugin in reversed(profile.reserve):
            plugin.unreserve(state, pod, node_name)
        self._cluster.forget_pod(pod.uid)
        gone = ClusterEvent(ASSIGNED_POD, Action.DELETE)
        self._queue.on_cluster_event(gone, pod.assigned_to(node_name), None, self._clock())

    async def _bind(
        self,
        profile: Profile,
        state: CycleState,
        queued: QueuedPodInfo,
        node_name: str,
        started: float,
        waiting: WaitingPod | None,
    ) -> None:
        """The binding cycle. Cancelled between two writes, it leaves everything as it is for the next scheduler."""
        pod = queued.pod
        if waiting is not None:
            status = await waiting.wait()
            self._waiting_pods.remove(pod.uid)
            if not status.is_success:
                self._running.pop(pod.uid, None)
                self._metrics.observe_attempt(
                    "unschedulable", profile.scheduler_name, self._clock() - started
                )
                self.unreserve(profile, state, pod, node_name)
                await self._reporter.handle_rejection(queued, status)
                return
            self._queue.end_in_flight(queued)
        durations = self._durations[profile.scheduler_name]
        try:
            async with self.limit.slot():
                status = await run_pre_bind_and_bind(profile, durations, state, pod, node_name)
        except Exception as error:  # noqa: BLE001 - the other pods go on
            log_failure(log, error, "pod %s: binding failed", pod.key)
            status = failed(error)
        self._running.pop(pod.uid, None)
        is_bound, now = status.is_success, self._clock()
        result = "scheduled" if is_bound else "error"
        self._metrics.observe_attempt(result, profile.scheduler_name, now - started)
        if is_bound:
            self._pod_status.scheduled(pod, node_name)
            self._metrics.pod_scheduled(queued.attempts, now - queued.added_at)
            run_post_bind(profile, durations, state, pod, node_name)
            self._queue.done(queued)
            return
        self.unreserve(profile, state, pod, node_name)
        await self._handle_binding_failure(queued, status, node_name)

    async def _handle_binding_failure(
        self, queued: QueuedPodInfo, status: Status, node_name: str
    ) -> None:
        pod, error = queued.pod, status.error
        if isinstance(error, BoundElsewhereError) or self._cluster.pod(pod.uid) is not None:
            log.info("pod %s: bound by another scheduler", pod.key)
            self._queue.done(queued)
            return
        if isinstance(error, UnknownBindingError):
            log.warning("pod %s: binding to node %s: %s", pod.key, node_name, error)
            self._queue.requeue(queued, self._clock())
            return
        keeps = isinstance(error, KeepsNominationError) and error.keeps_nomination
        nominated = node_name if keeps else ""
        await self._reporter.handle_scheduling_error(
            queued, status.message, nominated_node=nominated
        )

    def _cancelled(self, cycle: _BindingCycle, task: asyncio.Task[None]) -> None:
        """Unreserve a pod that was deleted during its binding."""
        if not task.cancelled():
            return
        _, profile, state, pod, node_name, started = cycle
        self._waiting_pods.remove(pod.uid)
        self._metrics.observe_attempt("error", profile.scheduler_name, self._clock() - started)
        self.unreserve(profile, state, pod, node_name)
