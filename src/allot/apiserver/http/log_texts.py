"""The texts of logs: computed once for all who ask for the same, few at a time, and fairly among users.

The threads that compute them also work on large bodies, which must not queue behind a thousand logs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Final

from allot.apiserver import api_errors
from allot.apiserver.http.fair_limiter import FairLimiter, RejectedError
from allot.apiserver.pacing import LARGE, Workers
from allot.lru_cache import LRUCache

AT_ONCE: Final = 2
MAX_RECENT: Final = 32
MAX_RECENT_BYTES: Final = 16 * 1024 * 1024


class LogTexts:
    """Computes texts, and keeps those of the last seconds."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._limiter = FairLimiter(AT_ONCE)
        self._recent: LRUCache[Hashable, bytes] = LRUCache(MAX_RECENT, MAX_RECENT_BYTES, len)
        self._computing: dict[Hashable, asyncio.Task[bytes]] = {}

    async def get(
        self, user: str, key: Hashable, compute: Callable[[], bytes], *, is_long: bool
    ) -> bytes:
        """The text of this key; 429 if too many others are being computed."""
        if not is_long:
            return compute()
        text = self._recent.get(key)
        if text is not None:
            return text
        task = self._computing.get(key)
        if task is None:
            task = self._computing[key] = asyncio.create_task(self._computed(user, key, compute))
            task.add_done_callback(_look_at_error)  # the requests that asked may have ended
        try:
            return await asyncio.shield(task)  # the others wait on if one of them goes
        except RejectedError:
            message = f"Too many requests, please try again later: many logs are being read for user {user!r}"
            raise api_errors.too_many_requests(message) from None

    async def _computed(self, user: str, key: Hashable, compute: Callable[[], bytes]) -> bytes:
        try:
            held = await self._limiter.acquire(user)
            try:
                text = await self._workers.run(LARGE + 1, compute)
            finally:
                self._limiter.release(user, held)
            self._recent.put(key, text)
            return text
        finally:
            del self._computing[key]


def _look_at_error(task: asyncio.Task[bytes]) -> None:
    if not task.cancelled():
        task.exception()
