"""The scheduler: pops pods from the queue, runs the scheduling cycle, and binds beside the next cycle."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from allot.client.errors import log_failure
from allot.deadline import DeadlineExceededError
from allot.scheduler.core.attempt_reporter import AttemptReporter
from allot.scheduler.core.background_decisions import (
    BackgroundDecisions,
    ChildResult,
    decide_with_limits,
    slow_plugins,
)
from allot.scheduler.core.binding_cycle import run_reserve_and_permit
from allot.scheduler.core.binding_cycles import BindingCycles
from allot.scheduler.core.decisions import Chosen, CycleError, NoNode
from allot.scheduler.core.failure_explainer import ALTERNATIVE_UNAVAILABLE, FailureExplainer
from allot.scheduler.core.failure_handler import FailedAttempt, FailureHandler, SchedulerHooks
from allot.scheduler.core.forked import ChildFailedError
from allot.scheduler.core.gated_pods import GatedPodReporter
from allot.scheduler.core.pod_status import UNSCHEDULABLE, PodStatusReporter
from allot.scheduler.core.scheduling_cycle import SchedulingCycle
from allot.scheduler.core.scheduling_queue import SchedulingQueue
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo
from allot.scheduler.framework.deadlines import (
    UNLIMITED,
    DecisionLimits,
    DecisionTime,
    TimeSlice,
)
from allot.scheduler.framework.metrics import SchedulerMetrics
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import Status
from allot.scheduler.framework.waiting_pods import WaitingPods
from allot.scheduler.state.cluster import ClusterState
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)

FLUSH_UNSCHEDULABLE_SECONDS: Final = 30.0
ATTEMPTS_IN_A_ROW: Final = 8
"""Attempts that find a node, between which bindings and informers do not run: what is written leaves in fewer messages."""
SECONDS_IN_A_ROW: Final = 0.002
"""After so much time they run earlier."""
MAX_BACKGROUND_ATTEMPTS: Final = 6
"""After so many background decisions without a result, a pod is requeued with a timeout."""
MAX_PREPARATION_SLICES: Final = 200
"""Slices in which devices are prepared before a background decision, for hundreds of thousands of them."""
MAX_SLICES: Final = 200
"""Slices before a background decision, whatever they achieve: nodes may change faster than they are evaluated."""
UNDECIDED: Final = "the search for devices takes long and goes on."


class Scheduler:
    """Schedules the pods in a queue. Event handlers fill the queue and the cluster state."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        queue: SchedulingQueue,
        cluster: ClusterState,
        pod_status: PodStatusReporter,
        metrics: SchedulerMetrics,
        clock: Callable[[], float] = time.monotonic,
        reasons: FailureExplainer | None = None,
        limits: DecisionLimits | None = None,
        waiting_pods: WaitingPods | None = None,
    ) -> None:
        """`reasons` adds details to the summary in conditions.

        Without `limits` only step budgets end a decision, as in virtual time.
        """
        self._reasons = reasons
        self._waiting_pods = WaitingPods() if waiting_pods is None else waiting_pods
        self._limits = limits
        self._background_decisions = BackgroundDecisions(
            limits or DecisionLimits(),
            queue.resume_attempt,
            self._prepare_devices,
            self._decide_in_child,
            self._resume,
        )
        self._background_task: asyncio.Task[None] | None = None
        self.profiles = profiles
        self.queue = queue
        self.cluster = cluster
        self._durations = {name: metrics.durations_of(name) for name in profiles}
        self._cycles = {
            name: SchedulingCycle(profile, cluster, self._durations[name])
            for name, profile in profiles.items()
        }
        self._pod_status = pod_status
        self._metrics = metrics
        self._clock = clock
        self._awake = asyncio.Event()
        queue.on_due = self.wake
        self._timer: asyncio.TimerHandle | None = None
        self._reporter = AttemptReporter(queue, cluster, pod_status, clock)
        self.bindings = BindingCycles(
            queue,
            cluster,
            pod_status,
            metrics,
            clock,
            self._durations,
            self._waiting_pods,
            self._reporter,
            self.spawn,
        )
        beside = SchedulerHooks(
            self.spawn, self._reporter.handle_scheduling_error, self._reporter.reporting
        )
        self._failure_handler = FailureHandler(
            queue, cluster, pod_status, clock, reasons, limits, beside, self._durations
        )
        self._gated_pods = GatedPodReporter(queue, pod_status, clock)
        self._tasks: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Wake the scheduling loop."""
        self._awake.set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine beside the scheduling cycle."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log_failure(log, error, "a background task of the scheduler failed")

    async def run(self) -> None:
        """Schedule until cancelled."""
        next_flush = self._clock() + FLUSH_UNSCHEDULABLE_SECONDS
        self.spawn(self._gated_pods.run())
        attempts, began = 0, self._clock()
        try:
            while True:
                now = self._clock()
                if attempts and self._is_row_complete(attempts, now - began):
                    await asyncio.sleep(0)
                    attempts, now = 0, self._clock()
                if not attempts:
                    began = now
                self._awake.clear()
                self.queue.flush(now)
                if now >= next_flush:
                    self.queue.flush_unschedulable(now)
                    next_flush = now + FLUSH_UNSCHEDULABLE_SECONDS
                if self.bindings.limit.is_exhausted:
                    await self.bindings.limit.wait_for_slot()
                queued = self.queue.pop(now)
                if queued is None:
                    due = self.queue.next_due()
                    await self._sleep(next_flush if due is None else min(due, next_flush))
                    attempts = 0
                    continue
                begun = self.bindings.begun
                await self._attempt(queued)
                # What a failed attempt leads to, such as a nomination, counts for the next one.
                has_node = self.bindings.begun > begun
                attempts = attempts + 1 if has_node else ATTEMPTS_IN_A_ROW
        finally:
            self._stop_timer()
            await self._end_tasks()

    def _is_row_complete(self, attempts: int, seconds: float) -> bool:
        """Whether bindings and informers shall run before the next attempt."""
        if attempts >= ATTEMPTS_IN_A_ROW or seconds >= SECONDS_IN_A_ROW:
            return True
        limit = self.bindings.limit
        return limit.in_use + attempts >= limit.limit  # bindings of this row may not have begun

    async def _sleep(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        at = loop.time() + max(until - self._clock(), 0.001)
        # One timer for many waits: the loop may be woken too early, but not too late.
        if self._timer is None or self._timer.when() > at:
            self._stop_timer()
            self._timer = loop.call_at(at, self._on_timer)
        await self._awake.wait()

    def _on_timer(self) -> None:
        self._timer = None
        self.wake()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _end_tasks(self) -> None:
        await cancel_and_wait(*self._tasks, ignore_errors=True)

    # --- one pod ---

    async def _attempt(self, queued: QueuedPodInfo) -> None:
        """Schedule a pod, in several time slices if needed; after the last one, in the background."""
        if not await self._try_in_slices(queued):
            self._decide_in_background(queued)

    async def _try_in_slices(
        self, queued: QueuedPodInfo, after_slice: Callable[[], None] = lambda: None
    ) -> bool:
        """Whether the attempt ended within some time slices, or the pod is deleted."""
        limits = self._limits
        slices_left = limits.max_slices if limits is not None else 1
        for _ in range(MAX_SLICES):
            time_slice = None if limits is None else TimeSlice(limits.slice_seconds)
            has_ended = self._try_to_schedule(queued, time_slice or UNLIMITED)
            after_slice()
            if has_ended:
                return True
            if time_slice is None:
                break
            queued.needs_preparation = time_slice.was_for_preparation
            if not time_slice.has_progress:
                break
            if not time_slice.has_many_results:
                slices_left -= 1
                if not slices_left:
                    break
            await asyncio.sleep(0)
            if not self.queue.is_being_tried(queued):
                return True
        return False

    def _try_to_schedule(self, queued: QueuedPodInfo, time: DecisionTime) -> bool:
        """Whether the attempt ended, with a decision or an error, before its time was over."""
        try:
            self.schedule(queued, time)
        except DeadlineExceededError:
            return False
        except Exception:
            log.exception("pod %s: scheduling failed", queued.pod.key)
            self.queue.requeue(queued, self._clock())
        queued.background_attempts = 0
        return True

    def schedule(self, queued: QueuedPodInfo, time: DecisionTime = UNLIMITED) -> None:
        """One attempt. Its writes run beside the next attempts.

        `DeadlineExceededError` if `time` is over before there is a decision; then nothing has changed.
        """
        pod = queued.pod
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None or self.cluster.pod(pod.uid) is not None:
            self.queue.done(queued)
            return
        if pod.is_terminating:
            self.queue.done(queued)
            self._pod_status.skipped(pod)
            return
        started = self._clock()
        decision = self._cycles[pod.scheduler_name].decide(pod, time)
        if self._reasons is not None:
            self._reasons.decided(self._clock() - started)
        match decision:
            case Chosen():
                self._assume_and_bind(profile, queued, decision, started)
                return
            case NoNode() if decision.is_pending:
                result = "unschedulable"
                self._failure_handler.wait(FailedAttempt(profile, queued, decision))
            case NoNode():
                result = "unschedulable"
                self._failure_handler.add(FailedAttempt(profile, queued, decision))
            case CycleError(_, status):
                result = "error"
                reasons = self._reasons
                detail = reasons.of_error(profile, pod, decision) if reasons is not None else ""
                self.spawn(self._reporter.handle_scheduling_error(queued, status.message, detail))
        self._metrics.observe_attempt(result, profile.scheduler_name, self._clock() - started)

    def _assume_and_bind(
        self, profile: Profile, queued: QueuedPodInfo, chosen: Chosen, started: float
    ) -> None:
        """Assume the pod on its node; its binding cycle runs beside the next decisions."""
        pod, node_name, state = queued.pod, chosen.node_name, chosen.state
        reasons = self._reasons
        skipped = reasons.of_choice(profile, chosen, pod) if reasons is not None else ""
        self.cluster.assume_pod(pod, node_name)
        self.cluster.nominations.remove(pod.uid)
        try:
            durations = self._durations[profile.scheduler_name]
            outcome = run_reserve_and_permit(profile, durations, state, pod, node_name)
        except Exception:
            self.bindings.unreserve(profile, state, pod, node_name)
            raise
        if isinstance(outcome, Status):
            self.bindings.unreserve(profile, state, pod, node_name)
            if outcome.is_rejection:
                self.spawn(self._reporter.handle_rejection(queued, outcome))
            else:
                self.spawn(self._reporter.handle_scheduling_error(queued, outcome.message))
            result = "unschedulable" if outcome.is_rejection else "error"
            self._metrics.observe_attempt(result, profile.scheduler_name, self._clock() - started)
            return
        if outcome is None:
            self.queue.end_in_flight(queued)
        else:
            self._waiting_pods.add(outcome)
        if skipped:
            self._pod_status.pending(pod, ALTERNATIVE_UNAVAILABLE, skipped)
        self.bindings.start(profile, state, queued, node_name, started, outcome)

    # --- decisions that take long ---

    async def _prepare_devices(self, queued: QueuedPodInfo) -> bool:
        """Go on in slices as long as they prepare devices. Whether the attempt has ended, or the pod is deleted."""
        assert self._limits is not None
        queued.needs_preparation = False
        for _ in range(MAX_PREPARATION_SLICES):
            time_slice = TimeSlice(self._limits.slice_seconds)
            if self._try_to_schedule(queued, time_slice):
                return True
            if not time_slice.was_for_preparation:
                break
            await asyncio.sleep(0)
            if not self.queue.is_being_tried(queued):
                return True
        return False

    def _decide_in_background(self, queued: QueuedPodInfo) -> None:
        self.queue.suspend_attempt(queued)
        self._background_decisions.add(queued)
        if self._background_task is None or self._background_task.done():
            self._background_task = self.spawn(self._background_decisions.run())

    def _decide_in_child(self, queued: QueuedPodInfo, seconds: float) -> ChildResult:
        pod = queued.pod
        name = pod.scheduler_name
        return decide_with_limits(
            self._cycles[name], self.profiles[name], self.cluster, pod, seconds
        )

    async def _resume(
        self, queued: QueuedPodInfo, found: ChildResult | ChildFailedError, is_final: bool
    ) -> None:
        """Continue with a pod after a background decision, or its failure."""
        assert self._limits is not None
        if not self.queue.is_being_tried(queued):
            return  # deleted
        profile = self.profiles[queued.pod.scheduler_name]
        if isinstance(found, ChildFailedError):
            if is_final:
                self._timed_out(profile, queued, str(found))
            else:
                self._decide_in_background(queued)
            return
        if found.error:
            self._metrics.attempts.inc("error", profile.scheduler_name)
            self.spawn(self._reporter.handle_scheduling_error(queued, found.error))
            return
        needs_more = found.timeouts > 0 and not is_final
        exported = dict(found.answers)
        for plugin in slow_plugins(profile):
            if plugin.name in exported:
                answers = exported[plugin.name]
                plugin.import_results(
                    answers, queued.pod, self.cluster.node, with_timeouts=not needs_more
                )
        if needs_more:
            message = f"0/{len(self.cluster)} nodes are available so far: {UNDECIDED}"
            self.spawn(self._pod_status.failed(queued.pod, UNSCHEDULABLE, message))
        else:

            def forget_stale() -> None:
                for plugin in slow_plugins(profile):
                    if plugin.name in exported:
                        plugin.forget_stale(exported[plugin.name])

            if await self._try_in_slices(queued, forget_stale):
                return
        if queued.background_attempts < MAX_BACKGROUND_ATTEMPTS:
            self._decide_in_background(queued)  # the result is outdated by changes in the cluster
        else:
            self._timed_out(profile, queued, "the cluster changes faster than it can be decided")

    def _timed_out(self, profile: Profile, queued: QueuedPodInfo, why: str) -> None:
        assert self._limits is not None
        queued.background_attempts = 0
        self._metrics.attempts.inc("unschedulable", profile.scheduler_name)
        limit_seconds = self._limits.decision_seconds
        self.spawn(self._reporter.handle_timeout(profile, queued, limit_seconds, why))
