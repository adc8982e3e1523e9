"""Long work in short stretches, so that the server keeps answering other requests.

Work on many objects is done object by object, with a `Pacer` that says when to yield to the event loop. Requests and
events of watches, of which many may be ready at once, begin with `begin_work`: all tasks share the stretch of one
iteration of the event loop, so that hundreds of short ones do not add up to a long one. Work on one
large object is done by `Workers`, in threads: the interpreter switches threads every few milliseconds. It does not do
so inside a single call into C, such as decoding a document, which therefore is as long a stretch as the largest body
allows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Executor, Future
from contextlib import suppress
from enum import IntEnum
from heapq import heappop, heappush
from itertools import count
from math import inf
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary, ref

from allot.deadline import Deadline, DeadlineExceededError

T = TypeVar("T")

STRETCH_SECONDS: Final = 0.005
"""How long the event loop is kept at a time."""
RESUMED_AT_ONCE: Final = 16
"""How many waiting tasks of one priority may resume in one iteration, as long as its stretch is not over."""
LARGE: Final = 32 * 1024
"""Work on more bytes than this is done in a thread ..."""
HUGE: Final = 1024 * 1024
"""... and on more than this in one that the rest does not wait for."""
SLOW: Final = 16
"""A byte of YAML, or of an object with expressions, counts as so many."""
VALUE: Final = 16
"""A value counts as so many bytes at least: thousands of empty ones fit into a short document."""
FEW_BYTES: Final = LARGE // max(VALUE, SLOW)
"""So many are not much work, whatever they are."""
LARGE_THREADS: Final = 1
HUGE_THREADS: Final = 1
RELEASE_SECONDS: Final = 0.002


class Pacer:
    """Says when work on the event loop has taken long enough.

    By time, because what users send decides how long an item takes; `client/cooperative.py` counts items of known cost.
    """

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, stretch: float = STRETCH_SECONDS
    ) -> None:
        self._clock = clock
        self._stretch = stretch
        # Many tasks that begin in one iteration do not have a stretch each.
        self._started = -inf if loop_iterations().is_long else clock()

    @property
    def is_due(self) -> bool:
        return self._clock() - self._started > self._stretch

    async def pause(self) -> None:
        """Yield to other tasks. Paused tasks resume in turns, so that many do not add up to a long stretch."""
        await loop_iterations().wait(Priority.PAUSED)
        self._started = self._clock()

    async def each(self, items: Iterable[T]) -> AsyncIterator[T]:
        """The items, with pauses between them."""
        for item in items:
            if self.is_due:
                await self.pause()
            yield item


class Priority(IntEnum):
    """Which of the tasks that wait for an iteration of the event loop resume first."""

    REQUEST = 0
    """A request for one object begins."""
    LINKED = 1
    """The same of a component of this cluster, which may send hundreds at once."""
    LIST = 2
    """A request for many objects, or a watch, begins."""
    PAUSED = 3
    """Work that has taken a stretch, or an event of one of many watches."""


_IN_TURNS: Final = ((Priority.REQUEST, Priority.LINKED), (Priority.LIST,), (Priority.PAUSED,))
"""Those that resume in turns, and after them others."""


async def begin_work(priority: Priority = Priority.REQUEST) -> None:
    """Before a request or an event of a watch: wait for a later iteration of the event loop if this one is long already."""
    iterations = loop_iterations()
    if iterations.is_busy(priority):
        await iterations.wait(priority)


class LoopIterations:
    """The iterations of one event loop, and the tasks that wait for one with time left.

        request  linked  request  list  paused │ request  linked  list  paused │ …
        └─────────── one stretch ────────────┘

    In every iteration at least one task of each priority resumes: none waits for ever.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.loop = ref(loop)
        self._clock = clock
        self._started: float | None = None
        """When the current iteration began, as far as it is known."""
        self._waiting: list[list[tuple[int, asyncio.Future[bool]]]] = [[] for _ in Priority]
        """A heap for each priority: first come, first served."""
        self._in_turns = tuple(
            tuple(self._waiting[each] for each in priorities) for priorities in _IN_TURNS
        )
        self._tickets = count()
        self._is_planned = False

    def is_busy(self, priority: Priority) -> bool:
        """Whether new work has to wait: the stretch of this iteration is over, or other tasks wait already."""
        if self._waiting[priority]:
            return True
        if (started := self._started) is None:
            return self.is_long
        return self._clock() - started > STRETCH_SECONDS

    @property
    def is_long(self) -> bool:
        """Whether the stretch of this iteration is over."""
        now = self._clock()
        if self._started is None:
            self._started = now
            if (loop := self.loop()) is not None:
                loop.call_soon(self._end_iteration)
            return False
        return now - self._started > STRETCH_SECONDS

    def _end_iteration(self) -> None:
        self._started = None

    async def wait(self, priority: Priority) -> None:
        """Wait for an iteration with time left, after the tasks that came before."""
        if not self._is_planned:  # no other task waits: it resumes in the next iteration
            self._plan()
            await asyncio.sleep(0)
            return
        waiting, ticket = self._waiting[priority], next(self._tickets)
        is_first = False
        while not is_first:
            resumed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            heappush(waiting, (ticket, resumed))
            self._plan()
            is_first = await resumed
            if not self.is_long:
                return

    def _plan(self) -> None:
        if not self._is_planned and (loop := self.loop()) is not None:
            self._is_planned = True
            loop.call_soon(self._resume_some)

    def _resume_some(self) -> None:
        """Once in an iteration: let some tasks resume in the next one."""
        self._is_planned = False
        for queues in self._in_turns:
            if any(queues):
                _resume(queues)
        if any(self._waiting):
            self._plan()


def _resume(queues: tuple[list[tuple[int, asyncio.Future[bool]]], ...]) -> None:
    """Let a few tasks resume, of each queue in turn."""
    for turn in range(RESUMED_AT_ONCE):
        for queue in queues:
            if (resumed := _next(queue)) is not None:
                resumed.set_result(turn == 0)
        if not any(queues):
            break


def _next(waiting: list[tuple[int, asyncio.Future[bool]]]) -> asyncio.Future[bool] | None:
    """The task that has waited longest; it waits no longer."""
    while waiting:
        _, resumed = heappop(waiting)
        if not resumed.done():  # it may have been cancelled
            return resumed
    return None


_known_iterations: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, LoopIterations]] = (
    WeakKeyDictionary()
)


_last_used: LoopIterations | None = None


def loop_iterations() -> LoopIterations:
    """Those of the running event loop."""
    global _last_used
    loop, last = asyncio.get_running_loop(), _last_used
    if last is not None and last.loop() is loop:  # a process has one loop, mostly
        return last
    iterations = _known_iterations.get(loop)
    if iterations is None:
        iterations = _known_iterations[loop] = LoopIterations(loop)
    _last_used = iterations
    return iterations


def release_interpreter(size: int) -> None:
    """Between two calls into C, in a thread that works on a large value: let the event loop run.

    An answer takes it several steps. Without this it would wait for another such call at each of them.
    """
    if size > LARGE:
        time.sleep(RELEASE_SECONDS)


def on_event_loop(loop: asyncio.AbstractEventLoop, work: Callable[[], T]) -> T:
    """What `work` returns on the event loop, which changes what it reads; for threads of `Workers` and the loop itself."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        return work()
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is for the thread that waits
            answer.set_exception(error)

    loop.call_soon_threadsafe(run)
    return answer.result()


def json_work(body: bytes) -> int:
    """How much work a JSON document is, in bytes of a plain one."""
    size = len(body)
    if size <= FEW_BYTES or size > LARGE:  # few values in any case, or in a thread in any case
        return size
    return max(size, (body.count(b",") + body.count(b"{") + body.count(b"[")) * VALUE)


def cpu_deadline(seconds: float, clock: Callable[[], float] = time.thread_time) -> Deadline:
    """A deadline by the CPU time of the thread that works, from its first check on."""
    end: float | None = None

    def check() -> None:
        nonlocal end
        now = clock()
        if end is None:
            end = now + seconds
        elif now > end:
            raise DeadlineExceededError

    return check


class Workers:
    """A few threads for work on large values. What they are given reads nothing that others change."""

    def __init__(self) -> None:
        self._large = _Threads(LARGE_THREADS)
        self._huge = _Threads(HUGE_THREADS)

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """What `work` returns: at once if it is about few bytes, from a thread otherwise."""
        if size <= LARGE:
            return work()
        threads = self._large if size <= HUGE else self._huge
        return await asyncio.get_running_loop().run_in_executor(threads, work)

    def close(self) -> None:
        """Work that has not begun is given up."""
        for threads in (self._large, self._huge):
            threads.shutdown(wait=False, cancel_futures=True)


class _Threads(Executor):
    """Threads that the end of the process does not wait for, started when there is something to do."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._threads: list[Thread] = []
        self._queue: SimpleQueue[tuple[Future[Any], Callable[..., Any], Any, Any] | None] = (
            SimpleQueue()
        )
        self._is_closed = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        if self._is_closed:
            future.cancel()
            return future
        self._queue.put((future, fn, args, kwargs))
        if len(self._threads) < self._count:
            self._threads.append(Thread(target=self._work, name="apiserver-worker", daemon=True))
            self._threads[-1].start()
        return future

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            future, function, args, kwargs = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = function(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - it is for those who await the future
                future.set_exception(error)
            else:
                future.set_result(result)
                del result
            del job, future, function, args, kwargs
            if not self._queue.empty():
                release_interpreter(LARGE + 1)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._is_closed = True
        with suppress(Empty):
            while cancel_futures:
                job = self._queue.get_nowait()
                if job is not None:
                    job[0].cancel()
        for _ in self._threads:
            self._queue.put(None)
        if wait:
            for thread in self._threads:
                thread.join()
