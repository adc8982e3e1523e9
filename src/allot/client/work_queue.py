"""A queue of what needs attention: each item once, never two workers on one item.

      add ──► queued ──► get ──► being worked on ──► done
               ▲                    │ added meanwhile │
               └────────────────────┴─────────────────┘

Adding an item that is queued changes nothing; one that is being worked on is queued again when it is
done. After failures an item comes back later and later.

Items come in the order in which they were added. A queue with a `handicap` lets expensive ones wait: an item
with a handicap of 3 s comes after all that are added within the next 3 s without one, and before later ones.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, NamedTuple, TypeVar

from allot.client.clock import Clock, LoopClock, Timer
from allot.client.errors import ApiStatusError, ClientError
from allot.client.retries import Backoff

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

FAILURE_BACKOFF: Final = Backoff(first_seconds=0.005, most_seconds=1000.0, jitter=0.0)


class QueueShutDownError(Exception):
    """There is nothing left, and nothing will come."""


class QueueObserver:
    """Told what happens, for metrics. This one does not care."""

    def added(self) -> None:
        """An item was queued that was not."""

    def retried(self) -> None:
        """An item will come back after a failure."""

    def taken(self, waited_seconds: float) -> None:
        """A worker took an item that had waited so long."""

    def finished(self, worked_seconds: float) -> None:
        """A worker is done with an item after so long."""


class _Delayed(NamedTuple):
    due: float
    timer: Timer


class _Ready(NamedTuple):
    """Sorts by time, then by the order of adding."""

    since: float
    number: int
    item: object


_STOP: Final = object()


def _none(_: object) -> float:
    return 0.0


class WorkQueue(Generic[K]):
    """For tasks of one event loop."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        backoff: Backoff = FAILURE_BACKOFF,
        observer: QueueObserver | None = None,
        handicap: Callable[[K], float] | None = None,
    ) -> None:
        self._clock: Clock = clock or LoopClock()
        self._backoff = backoff
        self._observer = observer or QueueObserver()
        self._handicap = handicap or _none
        self._ready: asyncio.PriorityQueue[_Ready] = asyncio.PriorityQueue()
        self._added = 0
        self._queued_at: dict[K, float] = {}
        """Items that wait for a worker, or for the worker that has them to be done."""
        self._taken_at: dict[K, float] = {}
        """Items that are being worked on."""
        self._delayed: dict[K, _Delayed] = {}
        self._failures: dict[K, int] = {}
        self._is_shut_down = False

    def __len__(self) -> int:
        """How many wait for a worker."""
        return sum(item not in self._taken_at for item in self._queued_at)

    def add(self, item: K) -> None:
        if self._is_shut_down or item in self._queued_at:
            return
        self._queued_at[item] = self._clock.now()
        self._observer.added()
        if item not in self._taken_at:
            self._put(item)

    def add_after(self, item: K, seconds: float) -> None:
        """Add it later. Of several times the earliest counts."""
        if self._is_shut_down:
            return
        if seconds <= 0:
            self.add(item)
            return
        due = self._clock.now() + seconds
        known = self._delayed.get(item)
        if known is not None:
            if known.due <= due:
                return
            known.timer.cancel()
        timer = self._clock.call_later(seconds, lambda: self._add_delayed(item))
        self._delayed[item] = _Delayed(due, timer)

    def add_rate_limited(self, item: K) -> None:
        """Add it after a wait that doubles with each failure, until `forget`."""
        failures = self._failures.get(item, 0) + 1
        self._failures[item] = failures
        self._observer.retried()
        self.add_after(item, self._backoff.seconds(failures, 0.0))

    def forget(self, item: K) -> None:
        """It has worked: the next failure is the first again."""
        self._failures.pop(item, None)

    def failures(self, item: K) -> int:
        return self._failures.get(item, 0)

    async def get(self) -> K:
        """The next item; `done` must follow. `QueueShutDownError` after the last."""
        ready = await self._ready.get()
        if ready.item is _STOP:
            self._ready.put_nowait(ready)
            raise QueueShutDownError
        key: K = ready.item  # type: ignore[assignment]
        now = self._clock.now()
        self._taken_at[key] = now
        self._observer.taken(now - self._queued_at.pop(key))
        return key

    def done(self, item: K) -> None:
        taken_at = self._taken_at.pop(item)
        self._observer.finished(self._clock.now() - taken_at)
        if item in self._queued_at:
            self._put(item)

    def shut_down(self) -> None:
        """Take nothing more. What is queued is still given out."""
        if self._is_shut_down:
            return
        self._is_shut_down = True
        for delayed in self._delayed.values():
            delayed.timer.cancel()
        self._delayed.clear()
        self._ready.put_nowait(_Ready(math.inf, 0, _STOP))

    def _put(self, item: K) -> None:
        self._added += 1
        since = self._clock.now() + self._handicap(item)
        self._ready.put_nowait(_Ready(since, self._added, item))

    def _add_delayed(self, item: K) -> None:
        del self._delayed[item]
        self.add(item)


async def run_workers(
    queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[None]], workers: int = 1
) -> None:
    """Reconcile what comes until the queue is shut down. What fails comes back later."""

    turn = asyncio.Lock()

    async def work() -> None:
        while True:
            try:
                item = await queue.get()
            except QueueShutDownError:
                return
            try:
                # A server in the same process makes nothing wait: one worker begins in each round of the loop.
                async with turn:
                    await asyncio.sleep(0)
                await reconcile(item)
            except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
                _report(item, error)
                queue.add_rate_limited(item)
            else:
                queue.forget(item)
            finally:
                queue.done(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())


def _report(item: object, error: Exception) -> None:
    """What the server says is news for operators; anything else is a mistake of ours, and shown whole."""
    answer = error if isinstance(error, ClientError) else error.__cause__
    if not isinstance(answer, ClientError):
        log.error("%s failed; it will be tried again", item, exc_info=error)
        return
    somebody_was_first = isinstance(answer, ApiStatusError) and (
        answer.is_conflict or answer.is_not_found
    )
    level = logging.INFO if somebody_was_first else logging.WARNING
    log.log(level, "%s: %s; it will be tried again", item, error)
