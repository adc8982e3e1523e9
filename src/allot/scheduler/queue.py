"""Pods that wait to be scheduled, and what wakes them.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Any, Final, NamedTuple

from allot.scheduler.framework.events import WAITING_POD, ClusterEvent, EventRegistration, Hint
from allot.scheduler.framework.plugins import PreEnqueuePlugin, QueueSortPlugin
from allot.scheduler.framework.status import SUCCESS, Status
from allot.scheduler.state.pods import PodInfo

LEFTOVER_SECONDS: Final = 300.0
"""A pod that nothing woke for so long is tried again: a hint may have been wrong."""


class Place(Enum):
    """Where a pod waits; the names are those of the metric `scheduler_pending_pods`."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"


class Backoff(NamedTuple):
    """How long a pod waits after a failure: doubled each time, up to a limit. No limit, no waiting."""

    initial_seconds: float = 1.0
    max_seconds: float = 10.0

    def after(self, failures: int) -> float:
        if failures <= 0 or self.max_seconds <= 0:
            return 0.0
        return float(min(self.initial_seconds * 2 ** min(failures - 1, 30), self.max_seconds))


@dataclass(eq=False, slots=True)
class QueuedPod:
    """A pod in the queue and its past attempts."""

    pod: PodInfo
    added_at: float
    """When the queue first heard of it."""
    queued_at: float
    """When it last came to the active queue, or failed."""
    place: Place = Place.ACTIVE
    attempts: int = 0
    rejections: int = 0
    errors: int = 0
    """Errors since the last attempt that ended without one."""
    rejected_by: frozenset[str] = frozenset()
    pending_on: frozenset[str] = frozenset()
    """Plugins that only wait for something; their events let the pod skip its backoff."""
    gate: Status = SUCCESS
    last_failed: bool = False
    """Whether the last attempt ended in an error."""
    was_flushed: bool = False
    ticket: int = 0
    """Which of its entries in a heap counts."""


@dataclass(slots=True)
class _Happening:
    event: ClusterEvent
    old: Any
    new: Any


Observer = Callable[[Place, str], None]
"""Told when a pod comes to a queue, and by which event."""


@dataclass(slots=True)
class _InFlight:
    queued: QueuedPod
    happenings: list[_Happening] = field(default_factory=list)


class SchedulingQueue:
    """All pods of one scheduler that are not bound yet."""

    def __init__(
        self,
        sort: QueueSortPlugin,
        gates: Mapping[str, Sequence[PreEnqueuePlugin]],
        registrations: Mapping[str, Sequence[EventRegistration]],
        backoff: Backoff = Backoff(),  # noqa: B008 - immutable
        observe: Observer = lambda *_: None,
    ) -> None:
        """`gates` are the pre-enqueue plugins by scheduler name; `registrations` the events by plugin."""
        self._sort = sort
        self._gates = gates
        self._registrations = registrations
        self._backoff = backoff
        self._observe = observe
        self._pods: dict[str, QueuedPod] = {}
        self._in_flight: dict[str, _InFlight] = {}
        self._active: list[tuple[tuple[float, ...], int, QueuedPod]] = []
        self._rejected_backoff: list[tuple[float, int, QueuedPod]] = []
        self._error_backoff: list[tuple[float, int, QueuedPod]] = []
        self._sleeping: dict[str, QueuedPod] = {}
        """Those that only an event can wake: gated and unschedulable ones."""
        self._tickets = count(1)

    # --- pods come and go ---

    def add(self, pod: PodInfo, now: float) -> None:
        """A pod that is not bound yet."""
        if pod.uid in self._pods:
            self.update(pod, now)
            return
        queued = QueuedPod(pod, now, now)
        self._pods[pod.uid] = queued
        self._enqueue(queued, now, "PodAdd")

    def update(self, pod: PodInfo, now: float, event: ClusterEvent | None = None) -> None:
        """A new version of a pod that waits; `event` says what changed, if anything that matters."""
        queued = self._pods.get(pod.uid)
        if queued is None:
            self.add(pod, now)
            return
        old, queued.pod = queued.pod, pod
        match queued.place:
            case Place.ACTIVE:
                self._push_active(queued)  # its priority may have changed
            case Place.GATED:
                if self._gate(queued).is_success:
                    self._enqueue(queued, now, "PodUpdate")
            case Place.UNSCHEDULABLE | Place.IN_FLIGHT if event is not None:
                self._consider(queued, _Happening(event, old, pod), now)
            case _:
                pass

    def delete(self, uid: str) -> None:
        queued = self._pods.pop(uid, None)
        self._in_flight.pop(uid, None)
        self._sleeping.pop(uid, None)
        if queued is not None:
            queued.ticket = 0

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    # --- attempts ---

    def pop(self, now: float) -> QueuedPod | None:
        """The next pod to try; None if nothing is due."""
        queued = self._pop_active() or self._pop_early()
        if queued is None:
            return None
        queued.attempts += 1
        self._move(queued, Place.IN_FLIGHT)
        self._in_flight[queued.pod.uid] = _InFlight(queued)
        return queued

    def decided(self, queued: QueuedPod) -> None:
        """The attempt chose a node; from now on no event can change that."""
        self._in_flight.pop(queued.pod.uid, None)

    def done(self, queued: QueuedPod) -> None:
        """The pod is bound, or somebody else's now."""
        self.delete(queued.pod.uid)

    def put_back(
        self,
        queued: QueuedPod,
        now: float,
        *,
        rejected_by: Iterable[str] = (),
        pending_on: Iterable[str] = (),
    ) -> None:
        """The attempt ended without a node: rejected by plugins, or (without any) by an error."""
        flight = self._in_flight.pop(queued.pod.uid, None)
        if self._pods.get(queued.pod.uid) is not queued:
            return  # deleted meanwhile
        queued.rejected_by, queued.pending_on = frozenset(rejected_by), frozenset(pending_on)
        queued.queued_at = now
        queued.last_failed = not (queued.rejected_by or queued.pending_on)
        if queued.last_failed:
            queued.errors += 1
            self._push_backoff(queued, now, "ScheduleAttemptFailure")
            return
        queued.errors = 0
        queued.rejections += 1
        self._move(queued, Place.UNSCHEDULABLE)
        for happening in flight.happenings if flight else ():
            if queued.place is Place.UNSCHEDULABLE:
                self._consider(queued, happening, now)
        if queued.place is Place.UNSCHEDULABLE:
            self._observe(Place.UNSCHEDULABLE, "ScheduleAttemptFailure")

    # --- events ---

    def happened(self, event: ClusterEvent, old: Any, new: Any, now: float) -> None:
        """Something in the cluster changed: wake the pods it may help."""
        if not self._sleeping and not self._in_flight:
            return
        concerned = self._concerned_plugins(event)
        happening = _Happening(event, old, new)
        for flight in self._in_flight.values():
            flight.happenings.append(happening)
        if not concerned:
            return
        for queued in tuple(self._sleeping.values()):
            if queued.place is Place.GATED:
                if queued.gate.plugin in concerned and self._gate(queued).is_success:
                    self._enqueue(queued, now, event.resource)
            elif concerned & (queued.rejected_by | queued.pending_on):
                self._consider(queued, happening, now)

    def flush(self, now: float) -> None:
        """Move pods whose backoff is over."""
        for heap in (self._rejected_backoff, self._error_backoff):
            while heap and heap[0][0] <= now:
                _, ticket, queued = heapq.heappop(heap)
                if queued.ticket == ticket:
                    self._enqueue(queued, now, "BackoffComplete")

    def flush_leftovers(self, now: float) -> None:
        """Try pods again that nothing woke for long."""
        for queued in tuple(self._sleeping.values()):
            if queued.place is Place.UNSCHEDULABLE and now - queued.queued_at > LEFTOVER_SECONDS:
                queued.was_flushed = True
                self._wake(queued, now, "UnschedulableTimeout", at_once=False)

    def next_due(self) -> float | None:
        """When `flush` or `pop` will have something to do; None if only an event can change that."""
        if self._has_active() or self._trimmed(self._rejected_backoff):
            return 0.0
        return self._error_backoff[0][0] if self._trimmed(self._error_backoff) else None

    # --- what is here ---

    def lengths(self) -> Mapping[Place, int]:
        return Counter(queued.place for queued in self._pods.values())

    def pods(self) -> Iterable[QueuedPod]:
        return self._pods.values()

    # --- inside ---

    def _gate(self, queued: QueuedPod) -> Status:
        for plugin in self._gates.get(queued.pod.scheduler_name, ()):
            status = plugin.pre_enqueue(queued.pod)
            if not status.is_success:
                queued.gate = status.by(plugin.name)
                return queued.gate
        queued.gate = SUCCESS
        return SUCCESS

    def _enqueue(self, queued: QueuedPod, now: float, event: str) -> None:
        """To the active queue, unless a gate is closed."""
        if not self._gate(queued).is_success:
            self._move(queued, Place.GATED)
            self._observe(Place.GATED, event)
            return
        queued.queued_at = now
        self._push_active(queued)
        self._observe(Place.ACTIVE, event)

    def _move(self, queued: QueuedPod, place: Place, ticket: int = 0) -> None:
        queued.place, queued.ticket = place, ticket
        if place is Place.GATED or place is Place.UNSCHEDULABLE:
            self._sleeping[queued.pod.uid] = queued
        else:
            self._sleeping.pop(queued.pod.uid, None)

    def _push_active(self, queued: QueuedPod) -> None:
        self._move(queued, Place.ACTIVE, next(self._tickets))
        key = self._sort.sort_key(queued.pod, queued.queued_at)
        heapq.heappush(self._active, (key, queued.ticket, queued))

    def _push_backoff(self, queued: QueuedPod, now: float, event: str) -> None:
        failures = queued.errors if queued.last_failed else queued.rejections
        due = queued.queued_at + self._backoff.after(failures)
        if due <= now:
            self._enqueue(queued, now, event)
            return
        self._move(queued, Place.BACKOFF, next(self._tickets))
        heap = self._error_backoff if queued.last_failed else self._rejected_backoff
        heapq.heappush(heap, (due, queued.ticket, queued))
        self._observe(Place.BACKOFF, event)

    def _has_active(self) -> bool:
        while self._active and self._active[0][2].ticket != self._active[0][1]:
            heapq.heappop(self._active)
        return bool(self._active)

    def _pop_active(self) -> QueuedPod | None:
        return heapq.heappop(self._active)[2] if self._has_active() else None

    def _pop_early(self) -> QueuedPod | None:
        """With nothing else to do, a pod need not sit out its backoff, unless it failed with an error."""
        while self._trimmed(self._rejected_backoff):
            queued = heapq.heappop(self._rejected_backoff)[2]
            if self._gate(queued).is_success:
                return queued
            self._move(queued, Place.GATED)
            self._observe(Place.GATED, "BackoffComplete")
        return None

    def _trimmed(self, heap: list[tuple[float, int, QueuedPod]]) -> bool:
        while heap and heap[0][2].ticket != heap[0][1]:
            heapq.heappop(heap)
        return bool(heap)

    def _concerned_plugins(self, event: ClusterEvent) -> set[str]:
        return {
            plugin
            for plugin, registrations in self._registrations.items()
            if any(registration.event.covers(event) for registration in registrations)
        }

    def _consider(self, queued: QueuedPod, happening: _Happening, now: float) -> None:
        """Ask the plugins that rejected the pod whether this may change their mind."""
        if queued.place is Place.IN_FLIGHT:
            flight = self._in_flight.get(queued.pod.uid)
            if flight is not None:
                flight.happenings.append(happening)
            return
        for plugin in sorted(queued.pending_on | queued.rejected_by):
            if self._hints(plugin, queued.pod, happening):
                at_once = plugin in queued.pending_on
                event = happening.event.resource
                name = "PodUpdate" if event == WAITING_POD else event
                self._wake(queued, now, name, at_once=at_once)
                return

    def _hints(self, plugin: str, pod: PodInfo, happening: _Happening) -> bool:
        for registration in self._registrations.get(plugin, ()):
            if not registration.event.covers(happening.event):
                continue
            if registration.hint is None:
                return True
            if registration.hint(pod, happening.old, happening.new) is Hint.QUEUE:
                return True
        return False

    def _wake(self, queued: QueuedPod, now: float, event: str, *, at_once: bool) -> None:
        if at_once:
            self._enqueue(queued, now, event)
        else:
            self._push_backoff(queued, now, event)
