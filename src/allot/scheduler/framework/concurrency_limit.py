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


class Turns:
    """A number of turns; who finds none free waits in line."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._free = asyncio.Semaphore(limit)

    @property
    def all_taken(self) -> bool:
        return self._free.locked()

    async def until_one_is_free(self) -> None:
        """Returns when nobody is in line for a turn any more, and one is left."""
        async with self._free:
            return

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn and keep it, except while `resting`."""
        turn = _Turn(self._free)
        await turn.take()
        token = _current.set(turn)
        try:
            yield
        finally:
            _current.reset(token)
            turn.give_back()


class _Turn:
    """The turn of one task."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._is_taken = False
        self.task = asyncio.current_task()

    async def take(self) -> None:
        await self._free.acquire()
        self._is_taken = True

    def give_back(self) -> None:
        if self._is_taken:
            self._is_taken = False
            self._free.release()


_current: Final[ContextVar[_Turn | None]] = ContextVar("turn", default=None)


@asynccontextmanager
async def resting() -> AsyncIterator[None]:
    """Let others have this task's turn, if it has one, as long as this lasts."""
    turn = _current.get()
    if turn is None or turn.task is not asyncio.current_task():  # it may be that of who started us
        yield
        return
    turn.give_back()
    try:
        yield
    except asyncio.CancelledError:
        raise  # there is nothing more to do that would need a turn
    except BaseException:
        await turn.take()
        raise
    await turn.take()
