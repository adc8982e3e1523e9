"""Turns: how many pods may be written at the same time.

A task that only waits for something rests: it keeps no turn, so a thousand pods that wait for their
devices leave all turns to others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final


class ConcurrencyLimit:
    """A number of turns; who finds none free waits in line."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._free = asyncio.Semaphore(limit)

    @property
    def is_exhausted(self) -> bool:
        return self._free.locked()

    async def wait_for_slot(self) -> None:
        """Returns when nobody is in line for a turn any more, and one is left."""
        async with self._free:
            return

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a turn and keep it, except while `released_slot`."""
        slot = _Slot(self._free)
        await slot.acquire()
        token = _current.set(slot)
        try:
            yield
        finally:
            _current.reset(token)
            slot.release()


class _Slot:
    """The turn of one task."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._is_held = False
        self.task = asyncio.current_task()

    async def acquire(self) -> None:
        await self._free.acquire()
        self._is_held = True

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._free.release()


_current: Final[ContextVar[_Slot | None]] = ContextVar("turn", default=None)


@asynccontextmanager
async def released_slot() -> AsyncIterator[None]:
    """Let others have this task's turn, if it has one, as long as this lasts."""
    slot = _current.get()
    if slot is None or slot.task is not asyncio.current_task():  # it may be that of who started us
        yield
        return
    slot.release()
    try:
        yield
    except asyncio.CancelledError:
        raise  # there is nothing more to do that would need a turn
    except BaseException:
        await slot.acquire()
        raise
    await slot.acquire()
