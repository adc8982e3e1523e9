"""Metrics for many readers at once, which cost the process a bounded share of its time.

Readers that wait at the same time get the same page, made after the last of them asked. One page is made at a time,
and between two there is a pause in proportion to the time that a page takes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from allot.exposition import Exposition, exposition, is_open_metrics

PAUSES: Final = 4.0
"""The pause after a page, in times of how long it took."""
MAX_PAUSE_SECONDS: Final = 1.0


class SharedExposition:
    """Shares what `make` returns for an Accept header."""

    def __init__(
        self,
        make: Callable[[str], Awaitable[Exposition]],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._make = make
        self._clock = clock
        self._sleep = sleep
        self._turn = asyncio.Lock()
        self._next_at = 0.0
        self._not_begun: dict[bool, asyncio.Task[Exposition]] = {}
        """By format: the page that requests from now on get."""

    async def page(self, accept: str) -> Exposition:
        """A page that is made after this call."""
        format_ = is_open_metrics(accept)
        task = self._not_begun.get(format_)
        if task is None:
            task = asyncio.create_task(self._made(format_, accept))
            self._not_begun[format_] = task
        return await asyncio.shield(task)

    async def _made(self, format_: bool, accept: str) -> Exposition:
        async with self._turn:
            pause = self._next_at - self._clock()
            if pause > 0:
                await self._sleep(pause)
            del self._not_begun[format_]
            started = self._clock()
            try:
                return await self._make(accept)
            finally:
                now = self._clock()
                self._next_at = now + min(PAUSES * (now - started), MAX_PAUSE_SECONDS)


def shared_exposition(registry: Callable[[], CollectorRegistry]) -> SharedExposition:
    """Shares the page of a registry whose metrics are written on this event loop.

    They are collected here, because others change them, and made text in a thread.
    """

    async def make(accept: str) -> Exposition:
        collected = _Collected(registry().collect())
        return await asyncio.to_thread(exposition, collected, accept)

    return SharedExposition(make)


class _Collected(CollectorRegistry):
    """Metrics of one moment."""

    def __init__(self, families: Iterable[Metric]) -> None:
        super().__init__()
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families
