"""Turns: of several tasks that write one object, one is at it, and the others wait in order."""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """The turns of all keys. A key without a turn takes no memory, and a turn that is free no waiting."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]] | None] = {}
        """Who waits, by key, while the turn is taken; None if none has waited yet."""

    def take_free(self, key: str) -> bool:
        """Take the turn if it is free: whether the caller has to `leave` afterwards."""
        if key in self._waiting:
            return False
        self._waiting[key] = None
        return True

    async def take(self, key: str) -> None:
        """Wait until it is the caller's turn, who has to `leave` afterwards."""
        if self.take_free(key):
            return
        waiting = self._waiting[key]
        if waiting is None:
            waiting = self._waiting[key] = deque()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(key)  # it was cancelled just when its turn came
            raise

    def leave(self, key: str) -> None:
        """Let the next one have the turn."""
        waiting = self._waiting[key]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[key]
