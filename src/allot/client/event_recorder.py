"""The event recorder.

Schedulers write events of events.k8s.io, with a time and a series. Controllers and kubelets write core events, with
`firstTimestamp`, `lastTimestamp` and `count`, as Kubernetes' own do.

Recording never blocks and never fails. Repetitions and similar events are counted instead of written
(`event_correlation.py`). Events of routine wait for a moment, so that what they are about is not held up, and for a few
seconds while their component is busy. The queue drops the oldest when full.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from zlib import crc32

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.client.client import Client, with_limit
from allot.client.clock import Timer, micro_time
from allot.client.errors import ApiStatusError, ClientError, log_failure
from allot.client.event_correlation import CorrelationLimits, EventCorrelator, EventSeries
from allot.client.events import Event, EventSource, ObjectReference, shortened
from allot.client.rate_limits import RequestLimit
from allot.client.resources import CORE_EVENTS, EVENTS, Resource
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)

INSTANCE_LIMIT: Final = 128
IDLE_CHECK_SECONDS: Final = 0.05
"""How often a component with events of routine is asked whether it is busy. They wait for that."""


class EventLimits(NamedTuple):
    """Limits of recording."""

    queue: int = 1000
    """Queued events."""
    writers: int = 4
    """Concurrent requests."""
    writes_per_second: float = 100.0
    writes_at_once: int = 1000
    """The burst of the write rate limit: events must not starve other requests."""
    busy_seconds: float = 5.0
    """How long an event of routine waits while its component is busy, unless the queue is half full."""
    update_seconds: float = 5.0
    """Minimum interval between writes of a count; doubles with each write."""
    max_update_seconds: float = 300.0
    """The limit of that interval."""
    correlation: CorrelationLimits = CorrelationLimits()


class ComponentRecorder:
    """Records events in the name of another component, such as one of several controllers."""

    def __init__(self, recorder: EventRecorder, source: EventSource) -> None:
        self._recorder = recorder
        self._source = source

    def event(
        self,
        regarding: ObjectReference,
        type_: str,
        reason: str,
        action: str,
        note: str,
        related: ObjectReference | None = None,
        annotations: Mapping[str, str] | None = None,
        *,
        is_routine: bool = False,
    ) -> None:
        """Record an event about an object. Never blocks or raises."""
        more = tuple(annotations.items()) if annotations else ()
        note = shortened(note)
        event = Event(
            regarding, type_, reason, action, note, self._source, related, more, is_routine
        )
        self._recorder.record(event)


class EventRecorder:
    """Records events of one component. Writing begins with `start`."""

    def __init__(
        self,
        client: Client,
        controller: str,
        instance: str,
        limits: EventLimits = EventLimits(),  # noqa: B008 - a value
        resource: Resource[RawObject] = EVENTS,
        *,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """`resource` is `EVENTS`, or `CORE_EVENTS` for components that count with first and last timestamps.

        `is_busy` says whether the component has requests that are more urgent.
        """
        limit = RequestLimit(limits.writes_per_second, limits.writes_at_once)
        self._client = with_limit(client, limit)
        self._clock = client.clock
        self.event = self.for_component(controller, instance).event
        """Records an event in the name of the component itself."""
        self._limits = limits
        self._correlator = EventCorrelator(limits.correlation)
        self._queue: deque[EventSeries] = deque()
        self._routine: deque[EventSeries] = deque()
        """Queued events that may wait while the component is busy."""
        self._idle_check: Timer | None = None
        self._delayed: dict[EventSeries, Timer] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        """Writers without an event."""
        self._tasks: list[asyncio.Task[None]] = []
        self._is_busy = is_busy
        self._is_stopping = False
        self._writing = 0
        self._resource = resource
        self._stamp = 0
        # Two components may report about one object in the same moment.
        self._stamp_offset = crc32(controller.encode()) % 1_000_000
        self.dropped = 0
        """Events dropped by a full queue or rejected by the server."""
        self.silenced = 0
        """Events suppressed by the spam filter."""

    # --- recording ---

    def for_component(self, component: str, instance: str = "") -> ComponentRecorder:
        """The same recorder, in the name of another component."""
        return ComponentRecorder(self, EventSource(component, instance[:INSTANCE_LIMIT]))

    def record(self, event: Event) -> None:
        now = self._clock.now()
        series = self._correlator.series_of(event, self._clock.today(), now)
        if series is None:
            self.silenced += 1
        else:
            self._enqueue(series, now)

    def _enqueue(self, series: EventSeries, now: float) -> None:
        if series.is_queued:
            return
        series.is_queued = True
        wait = series.not_before - now
        if wait > 0:
            self._delayed[series] = self._clock.call_later(wait, lambda: self._push_delayed(series))
        else:
            self._push(series, now)

    def _push_delayed(self, series: EventSeries) -> None:
        del self._delayed[series]
        self._push(series, self._clock.now())

    def _push(self, series: EventSeries, now: float) -> None:
        if len(self._queue) + len(self._routine) >= self._limits.queue:
            (self._routine or self._queue).popleft().is_queued = False
            self.dropped += 1
        series.queued_at = now
        if series.event.is_routine and not self._is_stopping:
            self._routine.append(series)
            if len(self._routine) > self._limits.queue // 2:
                self._wake()
            self._plan_idle_check()
        else:
            self._queue.append(series)
            self._wake()

    def _wake(self) -> None:
        """Wake one writer. It wakes the next one if there are more events."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return

    # --- writing ---

    def start(self) -> None:
        self._is_stopping = False
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._write_all()) for _ in range(self._limits.writers)
            ]

    async def stop(self, seconds: float = 1.0) -> None:
        """Write the queued events within `seconds`, then stop."""
        self._is_stopping = True
        self._wake()
        for series, timer in tuple(self._delayed.items()):
            timer.cancel()
            self._push_delayed(series)
        if self._tasks:
            await self._drain(seconds)
        tasks, self._tasks = self._tasks, []
        await cancel_and_wait(*tasks, ignore_errors=True)

    async def _drain(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while (self._queue or self._routine or self._writing) and loop.time() < deadline:
            await asyncio.sleep(0.005)

    async def _write_all(self) -> None:
        while True:
            while (series := self._next()) is not None:
                if self._queue or self._routine:
                    self._wake()
                self._writing += 1
                is_written = False
                try:
                    is_written = await self._write(series)
                except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
                    log_failure(log, error, "event about %s not written", series.event.regarding)
                    self.dropped += 1
                finally:
                    self._writing -= 1
                    series.is_queued = False
                # A rejected event is retried with its next repetition.
                if is_written and series.count > series.written:
                    self._enqueue(series, self._clock.now())
            if self._routine:
                self._plan_idle_check()
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting

    def _next(self) -> EventSeries | None:
        """The next event to write; None if no event is queued, or all can wait."""
        if self._queue:
            return self._queue.popleft()
        if not self._routine or self._can_wait(self._routine[0]):
            return None
        return self._routine.popleft()

    def _can_wait(self, series: EventSeries) -> bool:
        limits = self._limits
        if self._is_stopping or len(self._routine) > limits.queue // 2:
            return False
        return self._is_busy() and self._clock.now() - series.queued_at < limits.busy_seconds

    def _plan_idle_check(self) -> None:
        if self._idle_check is None:
            self._idle_check = self._clock.call_later(IDLE_CHECK_SECONDS, self._check_idle)

    def _check_idle(self) -> None:
        self._idle_check = None
        self._wake()

    async def _write(self, series: EventSeries) -> bool:
        """Whether it was written."""
        count = series.count
        try:
            if not series.written or not await self._update(series):
                await self._create(series)
        except ClientError as error:
            log.info("event about %s not written: %s", series.event.regarding, error)
            self.dropped += 1
            return False
        series.written = count
        limits = self._limits
        series.pause = min(max(series.pause * 2, limits.update_seconds), limits.max_update_seconds)
        series.not_before = self._clock.now() + series.pause
        return True

    async def _update(self, series: EventSeries) -> bool:
        """Whether the event still existed and was updated."""
        key = ObjectKey(_namespace(series.event), series.name)
        try:
            await self._client.submit_patch(self._resource, key, self._repetition(series))
        except ApiStatusError as error:
            if error.is_not_found:
                return False
            raise
        return True

    async def _create(self, series: EventSeries) -> None:
        series.name = self._new_name(series.event.regarding.name)
        try:
            await self._client.submit_create(self._resource, self._object(series))
        except ApiStatusError as error:
            if self._resource is EVENTS and _is_not_for_us(error):
                log.info("events.k8s.io cannot be used (%s); using core events", error)
                self._resource = CORE_EVENTS
                await self._client.submit_create(self._resource, self._object(series))
            elif not error.is_already_exists:  # created by an attempt whose response was lost
                raise

    def _repetition(self, series: EventSeries) -> dict[str, Any]:
        """A merge patch with the count."""
        if self._resource is EVENTS:
            return {"series": series.counted()}
        return {"count": series.count, "lastTimestamp": written_time(series.last)}

    def _object(self, series: EventSeries) -> RawObject:
        event = series.event
        content: dict[str, Any] = {
            "metadata": {"namespace": _namespace(event), "name": series.name},
            "type": event.type,
            "reason": event.reason,
        }
        if event.annotations:
            content["metadata"]["annotations"] = dict(event.annotations)
        if event.related is not None:
            content["related"] = event.related.as_json()
        about, (component, instance) = event.regarding.as_json(), event.source
        if self._resource is EVENTS:
            content |= {
                "eventTime": micro_time(series.began),
                "action": event.action,
                "regarding": about,
                "note": event.note,
                "reportingController": component,
                "reportingInstance": instance,
            }
            if series.count > 1:
                content["series"] = series.counted()
        else:
            host = {"host": instance} if instance else {}
            content |= {
                "involvedObject": about,
                "message": event.note,
                "source": {"component": component, **host},
                "reportingComponent": component,
                "reportingInstance": instance,
                "firstTimestamp": written_time(series.began),
                "lastTimestamp": written_time(series.last),
                "count": series.count,
            }
        return RawObject(content)

    def _new_name(self, about: str) -> str:
        moment = int(self._clock.today().timestamp() * 1e9) + self._stamp_offset
        self._stamp = max(self._stamp + 1, moment)
        suffix = f".{self._stamp:x}"
        return about[: 253 - len(suffix)].rstrip("-.") + suffix


def _namespace(event: Event) -> str:
    return event.regarding.namespace or "default"


def _is_not_for_us(error: ApiStatusError) -> bool:
    """Whether the group is not served or forbidden; not: the namespace is missing or terminating."""
    if error.is_forbidden:
        return not error.is_namespace_terminating
    return error.is_not_found and error.details.get("kind") != "namespaces"
