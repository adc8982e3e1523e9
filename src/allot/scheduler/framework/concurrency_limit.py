"""A concurrency limit whose slots can be released during waits.

A task that only waits, such as for devices to become ready, releases its slot to others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Final


class ConcurrencyLimit:
    """A number of slots, handed out in order."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_use = 0
        """The number of slots that are held, or on their way to a task that has waited."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_exhausted(self) -> bool:
        return self.in_use >= self.limit

    async def wait_for_slot(self) -> None:
        """Wait until a slot is free and no earlier task waits for one."""
        await self._acquire()
        self._release()

    def slot(self) -> AbstractAsyncContextManager[None]:
        """Wait for a slot and hold it, except within `released_slot`."""
        return _Slot(self)

    async def _acquire(self) -> None:
        if not self.is_exhausted:
            self.in_use += 1
            return
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if not waiting.cancelled():
                self._release()  # it was given a slot before it was cancelled
            raise

    def _release(self) -> None:
        """Give the slot to the task that has waited longest."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return
        self.in_use -= 1


class _Slot(AbstractAsyncContextManager[None]):
    """The slot of one task."""

    __slots__ = ("_is_held", "_limit", "_token", "task")

    def __init__(self, limit: ConcurrencyLimit) -> None:
        self._limit = limit
        self._is_held = False
        self.task = asyncio.current_task()

    async def __aenter__(self) -> None:
        await self.acquire()
        self._token = _current.set(self)

    async def __aexit__(self, *_: object) -> None:
        _current.reset(self._token)
        self.release()

    async def acquire(self) -> None:
        await self._limit._acquire()
        self._is_held = True

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._limit._release()


_current: Final[ContextVar[_Slot | None]] = ContextVar("turn", default=None)


@asynccontextmanager
async def released_slot() -> AsyncIterator[None]:
    """Release this task's slot, if it holds one, for the duration of the block."""
    slot = _current.get()
    if (
        slot is None or slot.task is not asyncio.current_task()
    ):  # inherited from the task that started this one
        yield
        return
    slot.release()
    try:
        yield
    except asyncio.CancelledError:
        raise  # a cancelled task needs no slot any more
    except BaseException:
        await slot.acquire()
        raise
    await slot.acquire()
