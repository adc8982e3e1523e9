"""Long work in short stretches, so that the server keeps answering other requests.

Work on many objects is done object by object, with a `Pacer` that says when to yield to the event loop. Work on one
large object is done by `Workers`, in threads: the interpreter switches threads every few milliseconds. It does not do so inside a single call into C, such as decoding a
document, which therefore is as long a stretch as the largest body allows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Executor, Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar

from allot.deadline import Deadline, DeadlineExceededError

T = TypeVar("T")

STRETCH_SECONDS: Final = 0.005
"""How long the event loop is kept at a time."""
LARGE: Final = 32 * 1024
"""Work on more bytes than this is done in a thread ..."""
HUGE: Final = 1024 * 1024
"""... and on more than this in one that the rest does not wait for."""
SLOW: Final = 16
"""A byte of YAML, or of an object with expressions, counts as so many."""
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
        self._started = clock()

    @property
    def is_due(self) -> bool:
        return self._clock() - self._started > self._stretch

    async def rest(self) -> None:
        """Yield to other tasks."""
        await asyncio.sleep(0)
        self._started = self._clock()

    async def each(self, items: Iterable[T]) -> AsyncIterator[T]:
        """The items, with rests between them."""
        for item in items:
            if self.is_due:
                await self.rest()
            yield item


def release_interpreter(size: int) -> None:
    """Between two calls into C, in a thread that works on a large value: let the event loop run.

    An answer takes it several steps. Without this it would wait for another such call at each of them.
    """
    if size > LARGE:
        time.sleep(RELEASE_SECONDS)


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
            del job, future, function, args, kwargs

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
