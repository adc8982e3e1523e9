"""A work queue like client-go's: each item is queued once, and processed by one worker at a time.

      add ──► queued ──► get ──► being worked on ──► done
               ▲                    │ added meanwhile │
               └────────────────────┴─────────────────┘

Adding a queued item has no effect; an item that is being processed is queued again when it is done. After failures an
item is queued with an exponential backoff.

Items are processed in the order in which they were added. A queue with a `handicap` delays expensive items: an item
with a handicap of 3 s is processed after those that are added within the next 3 s without one.

One worker takes an item per iteration of the event loop: with a server in the same process requests do not yield.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from heapq import heappop, heappush
from typing import Final, Generic, NamedTuple, TypeVar

from allot.backoff import Backoff
from allot.client.clock import Clock, LoopClock, Timer
from allot.client.errors import ApiStatusError, ClientError

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

FAILURE_BACKOFF: Final = Backoff(initial_seconds=0.005, max_seconds=1000.0, jitter=0.0)


class QueueShutDownError(Exception):
    """The queue is shut down and empty."""


class QueueObserver:
    """Callbacks for metrics. This base class does nothing."""

    def added(self) -> None:
        """An item was queued."""

    def retried(self) -> None:
        """A failed item was queued with a backoff."""

    def taken(self, waited_seconds: float) -> None:
        """A worker took an item; `waited_seconds` is its time in the queue."""

    def finished(self, worked_seconds: float) -> None:
        """A worker finished an item; `worked_seconds` is the processing time."""


class _Delayed(NamedTuple):
    due: float
    timer: Timer


class WorkQueue(Generic[K]):
    """A work queue for tasks of one event loop."""

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
        self._handicap = handicap
        self._ready: list[tuple[float, int, K]] = []
        """A heap, by time and then by the order of adding."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        """Workers."""
        self._is_waking = False
        """Whether one of them was woken and has not gone on yet."""
        self._added = 0
        self._queued_at: dict[K, float] = {}
        """Queued items, including those to queue again when their worker is done."""
        self._taken_at: dict[K, float] = {}
        """Items that are being processed."""
        self._delayed: dict[K, _Delayed] = {}
        self._failures: dict[K, int] = {}
        self._is_shut_down = False

    def __len__(self) -> int:
        """The number of items ready for a worker."""
        return sum(item not in self._taken_at for item in self._queued_at)

    def add(self, item: K) -> None:
        if self._is_shut_down or item in self._queued_at:
            return
        now = self._queued_at[item] = self._clock.now()
        self._observer.added()
        if item not in self._taken_at:
            self._put(item, now)

    def add_after(self, item: K, seconds: float) -> None:
        """Add an item after a delay. Of several delays the earliest applies."""
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
        """Add an item after a backoff that doubles with each failure, until `forget`."""
        failures = self._failures.get(item, 0) + 1
        self._failures[item] = failures
        self._observer.retried()
        self.add_after(item, self._backoff.seconds(failures, 0.0))

    def forget(self, item: K) -> None:
        """Reset the backoff of an item after a success."""
        if self._failures:
            self._failures.pop(item, None)

    def failures(self, item: K) -> int:
        return self._failures.get(item, 0)

    async def get(self) -> K:
        """The next item; `done` must follow. `QueueShutDownError` after the last."""
        await self._turn()
        if not self._ready:
            self._wake_next()
            raise QueueShutDownError
        _, _, key = heappop(self._ready)
        self._wake_next()
        now = self._clock.now()
        self._taken_at[key] = now
        self._observer.taken(now - self._queued_at.pop(key))
        return key

    async def _turn(self) -> None:
        """Wait until there is something for this worker. Always yields."""
        turn: asyncio.Future[None] | None = None
        try:
            if not self._is_waking and (self._ready or self._is_shut_down):
                self._is_waking = True
                await asyncio.sleep(0)
            else:
                turn = asyncio.get_running_loop().create_future()
                self._waiting.append(turn)
                await turn
        except asyncio.CancelledError:
            if turn is None or not turn.cancelled():
                self._is_waking = False
                self._wake_next()
            raise
        self._is_waking = False

    def done(self, item: K) -> None:
        now = self._clock.now()
        self._observer.finished(now - self._taken_at.pop(item))
        if item in self._queued_at:
            self._put(item, now)

    def shut_down(self) -> None:
        """Reject new items. Queued items are still processed."""
        if self._is_shut_down:
            return
        self._is_shut_down = True
        for delayed in self._delayed.values():
            delayed.timer.cancel()
        self._delayed.clear()
        self._wake_next()

    def _put(self, item: K, now: float) -> None:
        self._added += 1
        since = now if self._handicap is None else now + self._handicap(item)
        heappush(self._ready, (since, self._added, item))
        self._wake_next()

    def _wake_next(self) -> None:
        """Wake a worker if there is something for it, after the one that was woken before."""
        while self._waiting and not self._is_waking and (self._ready or self._is_shut_down):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._is_waking = True

    def _add_delayed(self, item: K) -> None:
        del self._delayed[item]
        self.add(item)


async def run_workers(
    queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[None]], workers: int = 1
) -> None:
    """Process items until the queue is shut down. Failed items are retried with a backoff."""

    async def work() -> None:
        while True:
            try:
                item = await queue.get()
            except QueueShutDownError:
                return
            try:
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
    """Client errors are logged in one line, other exceptions with their traceback."""
    answer = error if isinstance(error, ClientError) else error.__cause__
    if not isinstance(answer, ClientError):
        log.error("%s failed; retrying", item, exc_info=error)
        return
    was_conflict = isinstance(answer, ApiStatusError) and (
        answer.is_conflict or answer.is_not_found
    )
    level = logging.INFO if was_conflict else logging.WARNING
    log.log(level, "%s: %s; retrying", item, error)
