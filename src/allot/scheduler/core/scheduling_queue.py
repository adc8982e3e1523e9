"""The scheduling queue: pods that wait to be scheduled, and the events that move them.

    add ─► pre_enqueue ─► active ─► pop ─► (attempt) ─► scheduled: gone
             │ no           ▲ ▲                │
             ▼              │ └── backoff ◄────┤ an error, or an event came meanwhile
           gated ─ event ───┤        ▲         │ rejected by plugins
                            └────────┴── unschedulable ◄┘
                              an event that one of those plugins has a hint for

Times come in as arguments: nothing here reads a clock or waits.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Final, Self

from allot.backoff import Backoff
from allot.scheduler.core.active_queue import ActiveQueue
from allot.scheduler.core.backoff_queue import BackoffQueue
from allot.scheduler.core.in_flight_events import InFlightEvents, ObservedEvent
from allot.scheduler.core.queueing_hints import QueueingHints
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo, SubQueue, UnschedulablePods
from allot.scheduler.framework.backoff import POD_BACKOFF, TIMEOUT_BACKOFF
from allot.scheduler.framework.events import (
    WAITING_POD,
    Action,
    ClusterEvent,
    EventRegistration,
)
from allot.scheduler.framework.plugins import PreEnqueuePlugin, QueueSortPlugin
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import SUCCESS, Code, Status
from allot.scheduler.state.pods import PodInfo

MAX_UNSCHEDULABLE_SECONDS: Final = 300.0
"""An unschedulable pod is retried after this time even without an event: a hint may be wrong."""
WAITING_FOR_EVENTS: Final = (SubQueue.GATED, SubQueue.UNSCHEDULABLE)
CLAIM_STATUSES_CHANGED: Final = ClusterEvent(WAITING_POD, Action.UPDATE_POD_CLAIM_STATUSES)

Observer = Callable[[SubQueue, str], None]
"""Called when a pod enters a sub-queue, with the event that moved it."""
DescribeChange = Callable[[PodInfo, PodInfo], ClusterEvent]
"""What changed between two versions of a pod."""
OnGated = Callable[[QueuedPodInfo], None]
"""Called when a pod is gated for a reason that is reported, or for another one than before."""


class SchedulingQueue:
    """All pods of one scheduler that are not bound yet, in four sub-queues."""

    def __init__(
        self,
        sort: QueueSortPlugin,
        gates: Mapping[str, Sequence[PreEnqueuePlugin]],
        registrations: Mapping[str, Sequence[EventRegistration]],
        backoff: Backoff = POD_BACKOFF,
        observe: Observer = lambda *_: None,
    ) -> None:
        """`gates` are the pre-enqueue plugins by scheduler name; `registrations` the events by plugin."""
        self._gated_by_reference = {
            plugin.name
            for plugins in gates.values()
            for plugin in plugins
            if plugin.gates_on_referenced_objects
        }
        self._gates = gates
        self._hints = QueueingHints(registrations)
        self._observe = observe
        self.on_gated: OnGated = lambda _: None
        self.on_due: Callable[[], None] = lambda: None
        """Called when `next_due` may be earlier than before."""
        self._pods: dict[str, QueuedPodInfo] = {}
        self._in_flight_events = InFlightEvents()
        self._active = ActiveQueue(sort)
        self._backoff = BackoffQueue(backoff, sort)
        self._timed_out: list[tuple[float, int, int, QueuedPodInfo]] = []
        """Unschedulable pods whose attempt timed out: when they are retried, and after which attempt."""
        self._unschedulable_pods = UnschedulablePods(self._referenced_objects)
        self.checks = 0
        """How often an event made the queue check a pod; tests count it."""
        self._tickets = count(1)

    @classmethod
    def of_profiles(
        cls, profiles: Mapping[str, Profile], backoff: Backoff, observe: Observer = lambda *_: None
    ) -> Self:
        """The queue of a scheduler: all profiles sort in the same way, and each gates and waits for itself."""
        first = next(iter(profiles.values()))
        return cls(
            first.queue_sort[0],
            {name: profile.pre_enqueue for name, profile in profiles.items()},
            {
                plugin.name: plugin.events_to_register()
                for profile in profiles.values()
                for plugin in profile.plugins
            },
            backoff,
            observe,
        )

    # --- pods come and go ---

    def add(self, pod: PodInfo, now: float) -> None:
        """Add a pod that is not bound yet."""
        if pod.uid in self._pods:
            self.update(pod, now)
            return
        queued = QueuedPodInfo(pod, now, now)
        self._pods[pod.uid] = queued
        self._enqueue(queued, now, "PodAdd")

    def update(self, pod: PodInfo, now: float, change: DescribeChange | None = None) -> None:
        """Take the new version of a pod; `change` says what is different."""
        queued = self._pods.get(pod.uid)
        if queued is None:
            self.add(pod, now)
            return
        old, queued.pod = queued.pod, pod
        match queued.sub_queue:
            case SubQueue.GATED:
                if self._gate(queued) is SUCCESS:
                    self._activate(queued, now, "PodUpdate")
                else:
                    self._move(queued, SubQueue.GATED)  # it may reference other objects now
            case SubQueue.ACTIVE:
                # Its priority may have changed.
                self._move(queued, SubQueue.ACTIVE, next(self._tickets))
                self._active.push(queued)
            case SubQueue.UNSCHEDULABLE | SubQueue.IN_FLIGHT:
                if queued.sub_queue is SubQueue.UNSCHEDULABLE:
                    self._move(queued, SubQueue.UNSCHEDULABLE)  # as above
                if change is not None:
                    event = change(old, pod)
                    self._run_queueing_hints(queued, ObservedEvent(event, old, pod), now)
            case _:
                pass

    def retry(self, uid: str, now: float) -> None:
        """Retry a pod although no object changed, as if its claim statuses had."""
        queued = self._pods.get(uid)
        if queued is not None:
            self.update(queued.pod, now, lambda *_: CLAIM_STATUSES_CHANGED)

    def delete(self, uid: str) -> None:
        queued = self._pods.pop(uid, None)
        self._in_flight_events.end(uid)
        if queued is not None:
            self._unschedulable_pods.remove(queued)
            queued.ticket = 0

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    @property
    def size(self) -> int:
        """The number of pods, in all sub-queues and in flight."""
        return len(self._pods)

    def find(self, uid: str) -> QueuedPodInfo | None:
        return self._pods.get(uid)

    # --- attempts ---

    def pop(self, now: float) -> QueuedPodInfo | None:
        """The next pod to schedule, in flight from now on; None if none is due."""
        queued = self._active.pop() or self._pop_from_backoff()
        if queued is None:
            return None
        queued.attempts += 1
        self._begin(queued)
        return queued

    def _begin(self, queued: QueuedPodInfo) -> None:
        self._move(queued, SubQueue.IN_FLIGHT)
        self._in_flight_events.begin(queued.pod.uid)

    def suspend_attempt(self, queued: QueuedPodInfo) -> None:
        """Take the pod out of flight until `resume_attempt`. The attempt starts over, so no event is lost."""
        self._in_flight_events.end(queued.pod.uid)
        if self._pods.get(queued.pod.uid) is queued:
            self._move(queued, SubQueue.BACKOFF, next(self._tickets))

    def resume_attempt(self, queued: QueuedPodInfo) -> bool:
        """Put a suspended pod in flight again; False if it was deleted."""
        if self._pods.get(queued.pod.uid) is not queued:
            return False
        self._begin(queued)
        return True

    def is_being_tried(self, queued: QueuedPodInfo) -> bool:
        """Whether the pod is in flight."""
        return queued.sub_queue is SubQueue.IN_FLIGHT and self._pods.get(queued.pod.uid) is queued

    def end_in_flight(self, queued: QueuedPodInfo) -> None:
        """The attempt chose a node: events are not collected for it any more."""
        self._in_flight_events.end(queued.pod.uid)

    def done(self, queued: QueuedPodInfo) -> None:
        """The pod is bound, or another scheduler's."""
        self.delete(queued.pod.uid)

    def requeue(
        self,
        queued: QueuedPodInfo,
        now: float,
        *,
        rejected_by: Iterable[str] = (),
        pending_on: Iterable[str] = (),
        timed_out: bool = False,
    ) -> None:
        """Put a pod back after an attempt: rejected by plugins, or (without any) ended by an error.

        In-flight events are replayed. After a timeout the pod is also retried without an event, with backoff.
        """
        observed_events = self._in_flight_events.since_begin(queued.pod.uid)
        self._in_flight_events.end(queued.pod.uid)
        if self._pods.get(queued.pod.uid) is not queued:
            return  # deleted meanwhile
        queued.rejected_by, queued.pending_on = frozenset(rejected_by), frozenset(pending_on)
        queued.queued_at = now
        queued.last_failed = not (queued.rejected_by or queued.pending_on)
        queued.timeouts = queued.timeouts + 1 if timed_out else 0
        if queued.last_failed:
            queued.errors += 1
            self._push_backoff(queued, now, "ScheduleAttemptFailure")
            return
        queued.errors = 0
        queued.rejections += 1
        self._move(queued, SubQueue.UNSCHEDULABLE)
        for observed in observed_events:
            if queued.sub_queue is SubQueue.UNSCHEDULABLE:
                self._run_queueing_hints(queued, observed, now)
        if queued.sub_queue is SubQueue.UNSCHEDULABLE:
            self._observe(SubQueue.UNSCHEDULABLE, "ScheduleAttemptFailure")
            if timed_out:
                due = now + TIMEOUT_BACKOFF.seconds(queued.timeouts)
                heapq.heappush(self._timed_out, (due, next(self._tickets), queued.attempts, queued))
                self.on_due()

    # --- events ---

    def on_cluster_event(
        self, event: ClusterEvent, old: Any, new: Any, now: float, about: Hashable = None
    ) -> None:
        """Requeue the pods that an event may help, according to the queueing hints of plugins.

        `about` is the key of the object for pods that reference it.
        """
        in_flight = self._in_flight_events.pods
        if not in_flight and not self._unschedulable_pods:
            return
        concerned = self._hints.interested_plugins(event)
        if not concerned:
            return
        observed = ObservedEvent(event, old, new)
        if in_flight:
            self._in_flight_events.add(observed)
        for queued in self._unschedulable_pods.gated(concerned, self._gated_by_reference, about):
            self.checks += 1
            plugin = queued.gate.plugin
            if self._gate(queued) is SUCCESS:
                self._activate(queued, now, event.resource)
            elif queued.gate.plugin != plugin:
                self._move(queued, SubQueue.GATED)  # it waits for events of another plugin now
        if not self._unschedulable_pods.has_unschedulable:
            return
        only_users = about is not None and self._hints.helps_only_referencing_pods(
            concerned, observed
        )
        for queued in self._unschedulable_pods.unschedulable(about if only_users else None):
            if concerned & (queued.rejected_by | queued.pending_on):
                self.checks += 1
                self._run_queueing_hints(queued, observed, now)

    def flush(self, now: float) -> None:
        """Move pods whose backoff is over to the active queue."""
        for queued in self._backoff.pop_completed(now):
            self._enqueue(queued, now, "BackoffComplete")
        while self._timed_out and self._timed_out[0][0] <= now:
            _, _, attempts, queued = heapq.heappop(self._timed_out)
            if queued.sub_queue is SubQueue.UNSCHEDULABLE and queued.attempts == attempts:
                self._enqueue(queued, now, "TimeoutBackoffComplete")

    def flush_unschedulable(self, now: float) -> None:
        """Requeue pods that have been unschedulable for long."""
        for queued in self._unschedulable_pods.unschedulable():
            if now - queued.queued_at > MAX_UNSCHEDULABLE_SECONDS:
                self._wake(queued, now, "UnschedulableTimeout", at_once=False)

    def next_due(self) -> float | None:
        """When `flush` or `pop` has something to do; None if that takes an event."""
        if self._active.has_pods() or self._backoff.has_rejected():
            return 0.0
        timed_out = self._timed_out[0][0] if self._timed_out else None
        failed = self._backoff.first_failed_due()
        return min((due for due in (timed_out, failed) if due is not None), default=None)

    # --- contents ---

    @property
    def has_active(self) -> bool:
        """Whether the active queue has a pod."""
        return self._active.has_pods()

    def lengths(self) -> Mapping[str, int]:
        """Pods by the name of their sub-queue."""
        return Counter(queued.sub_queue for queued in self._pods.values())

    def rejections(self) -> Mapping[tuple[str, str], int]:
        """The number of pods that a plugin rejected in their last attempt, by plugin and scheduler name."""
        found: Counter[tuple[str, str]] = Counter()
        for queued in self._pods.values():
            match queued.sub_queue:
                case SubQueue.GATED:
                    plugins = frozenset({queued.gate.plugin})
                case SubQueue.IN_FLIGHT:
                    continue
                case _:
                    plugins = queued.rejected_by | queued.pending_on
            found.update((plugin, queued.pod.scheduler_name) for plugin in plugins)
        return found

    def pods(self) -> Iterable[QueuedPodInfo]:
        return self._pods.values()

    # --- internals ---

    def _gate(self, queued: QueuedPodInfo) -> Status:
        """SUCCESS (the constant), or why the pod is gated."""
        pod = queued.pod
        for plugin in self._gates.get(pod.scheduler_name, ()):
            status = plugin.pre_enqueue(pod)
            if status is SUCCESS:
                continue
            if status.code is not Code.SUCCESS:
                before, queued.gate = queued.gate, status.by(plugin.name)
                if status.is_reported and queued.gate != before:
                    self.on_gated(queued)
                return queued.gate
        queued.gate = SUCCESS
        return SUCCESS

    def _enqueue(self, queued: QueuedPodInfo, now: float, event: str) -> None:
        """Move to the active queue, or to the gated pods if pre_enqueue says so."""
        if self._gate(queued) is not SUCCESS:
            self._move(queued, SubQueue.GATED)
            self._observe(SubQueue.GATED, event)
            return
        self._activate(queued, now, event)

    def _activate(self, queued: QueuedPodInfo, now: float, event: str) -> None:
        """Move a pod that is not gated to the active queue."""
        queued.queued_at = now
        self._move(queued, SubQueue.ACTIVE, next(self._tickets))
        self._active.push(queued)
        self.on_due()
        self._observe(SubQueue.ACTIVE, event)

    def _referenced_objects(self, pod: PodInfo) -> Iterable[Hashable]:
        for plugin in self._gates.get(pod.scheduler_name, ()):
            yield from plugin.referenced_objects(pod)

    def _move(self, queued: QueuedPodInfo, sub_queue: SubQueue, ticket: int = 0) -> None:
        if queued.sub_queue in WAITING_FOR_EVENTS:
            self._unschedulable_pods.remove(queued)
        queued.sub_queue, queued.ticket = sub_queue, ticket
        if sub_queue in WAITING_FOR_EVENTS:
            self._unschedulable_pods.add(queued)

    def _push_backoff(self, queued: QueuedPodInfo, now: float, event: str) -> None:
        if self._backoff.due(queued) <= now:
            self._enqueue(queued, now, event)
            return
        self._move(queued, SubQueue.BACKOFF, next(self._tickets))
        self._backoff.push(queued)
        self.on_due()
        self._observe(SubQueue.BACKOFF, event)

    def _pop_from_backoff(self) -> QueuedPodInfo | None:
        """A pod in backoff when the active queue is empty, unless its last attempt ended in an error."""
        while (queued := self._backoff.pop_rejected()) is not None:
            if self._gate(queued) is SUCCESS:
                return queued
            self._move(queued, SubQueue.GATED)
            self._observe(SubQueue.GATED, "BackoffComplete")
        return None

    def _run_queueing_hints(
        self, queued: QueuedPodInfo, observed: ObservedEvent, now: float
    ) -> None:
        """Requeue the pod if a plugin that rejected it says that the event may help."""
        if queued.sub_queue is SubQueue.IN_FLIGHT:
            self._in_flight_events.add_own(queued.pod.uid, observed)
            return
        for plugin in sorted(queued.pending_on | queued.rejected_by):
            if self._hints.is_worth_requeuing(plugin, queued.pod, observed):
                at_once = plugin in queued.pending_on
                event = observed.event.resource
                name = "PodUpdate" if event == WAITING_POD else event
                self._wake(queued, now, name, at_once=at_once)
                return

    def _wake(self, queued: QueuedPodInfo, now: float, event: str, *, at_once: bool) -> None:
        if at_once:
            self._enqueue(queued, now, event)
        else:
            self._push_backoff(queued, now, event)
