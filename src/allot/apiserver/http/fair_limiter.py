"""A limit that users share fairly: seats for requests, bytes for bodies.

What does not fit waits. What becomes free goes to the waiting user who holds least, so that a user who asks for
everything delays themselves. A user never holds more than three quarters, so that the next one need not wait
for requests of the first to end.

    acquire ─► fits ───────────────────────────► held ─► release ─► next waiting user
            └► waits (bounded per user, in all and in time) ─► held
                                                └► rejected
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, NamedTuple

QUEUE_FULL: Final = "queue-full"
TIME_OUT: Final = "time-out"
"""Reasons as Kubernetes' metrics name them."""


class RejectedError(Exception):
    """There is no room, and no room to wait, or the wait was too long."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class QueueLimits(NamedTuple):
    """How many requests may wait, and how long."""

    max_waiting: int = 2000
    max_waiting_per_user: int = 500
    wait_seconds: float = 5.0


class _Waiting:
    __slots__ = ("amount", "granted", "number", "user")

    def __init__(self, user: str, amount: int, number: int, granted: asyncio.Future[None]) -> None:
        self.user = user
        self.amount = amount
        self.number = number
        self.granted = granted


class FairLimiter:
    """At most `limit` units at once. For use in one event loop, whose clock times the waits."""

    def __init__(self, limit: int, queue: QueueLimits = QueueLimits()) -> None:  # noqa: B008 - a value
        self.limit = limit
        self.share = max(1, limit - max(1, limit // 4)) if limit > 1 else limit
        """What one user holds at most."""
        self.in_use = 0
        self.waiting = 0
        self._queue = queue
        self._held: dict[str, int] = {}
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._numbers = 0
        self._is_full = False
        """Whether requests are queued for a release, so that a new one is queued as well."""

    def held_by(self, user: str) -> int:
        return self._held.get(user, 0)

    def take(self, user: str, amount: int = 1) -> int | None:
        """Take so much, or a user's whole share if it is less: how much it was; None if it does not fit now."""
        amount = min(amount, self.share)
        held = self._held.get(user, 0)
        if (
            self._is_full
            or user in self._waiting
            or self.in_use + amount > self.limit
            or held + amount > self.share
        ):
            return None
        self.in_use += amount
        self._held[user] = held + amount
        return amount

    async def acquire(self, user: str, amount: int = 1) -> int:
        """The same, as soon as it fits. Raises `RejectedError`."""
        taken = self.take(user, amount)
        return await self._wait(user, min(amount, self.share)) if taken is None else taken

    def release(self, user: str, amount: int = 1) -> None:
        """Give back what `acquire` took, or part of it."""
        if not amount:
            return
        self.in_use -= amount
        rest = self._held[user] - amount
        if rest:
            self._held[user] = rest
        else:
            del self._held[user]
        if self.waiting:
            self._dispatch()

    async def _wait(self, user: str, amount: int) -> int:
        queue = self._waiting.get(user)
        if self.waiting >= self._queue.max_waiting or (
            queue is not None and len(queue) >= self._queue.max_waiting_per_user
        ):
            raise RejectedError(QUEUE_FULL)
        loop = asyncio.get_running_loop()
        self._numbers += 1
        waiting = _Waiting(user, amount, self._numbers, loop.create_future())
        self._waiting.setdefault(user, deque()).append(waiting)
        self.waiting += 1
        self._dispatch()
        try:
            async with asyncio.timeout(self._queue.wait_seconds):
                await waiting.granted
        except BaseException as error:
            if waiting.granted.done() and not waiting.granted.cancelled():
                self.release(user, amount)  # granted in the moment in which it was given up
            elif waiting in self._waiting.get(user, ()):
                self._remove(waiting)
                self._dispatch()  # the next may need less
            if isinstance(error, TimeoutError):
                raise RejectedError(TIME_OUT) from None
            raise
        return amount

    def _remove(self, waiting: _Waiting) -> None:
        queue = self._waiting[waiting.user]
        queue.remove(waiting)
        if not queue:
            del self._waiting[waiting.user]
        self.waiting -= 1

    def _dispatch(self) -> None:
        """Grant what fits to users that hold least, and among those to the one that waited longest."""
        self._is_full = False
        while first := self._next():
            if first.granted.done():
                self._remove(first)  # cancelled, and its task does not know yet
                continue
            if self.in_use + first.amount > self.limit:
                self._is_full = True
                return
            self._remove(first)
            self.in_use += first.amount
            self._held[first.user] = self._held.get(first.user, 0) + first.amount
            first.granted.set_result(None)

    def _next(self) -> _Waiting | None:
        heads = (
            queue[0]
            for user, queue in self._waiting.items()
            if self._held.get(user, 0) + queue[0].amount <= self.share
        )
        return min(
            heads, key=lambda head: (self._held.get(head.user, 0), head.number), default=None
        )
