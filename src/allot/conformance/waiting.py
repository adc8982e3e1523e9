"""Waits for what a driver should do, as long as the driver runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from allot.client.clock import Clock
from allot.conformance.results import CheckFailedError
from allot.task_cancellation import cancel_and_wait

T = TypeVar("T")

POLL_SECONDS: Final = 0.05


class Waiting:
    """Polls conditions."""

    def __init__(self, clock: Clock, default_seconds: float, problem: Callable[[], str]) -> None:
        """`problem` says why the driver does not run, and is empty if it does."""
        self._clock = clock
        self._default_seconds = default_seconds
        self._problem = problem

    async def until(
        self, holds: Callable[[], Awaitable[T | None]], what: str, seconds: float | None = None
    ) -> T:
        """What `holds` answers, once it is true. `CheckFailedError` if that takes too long."""
        limit = self._default_seconds if seconds is None else seconds
        deadline = self._clock.now() + limit
        while True:
            found = await holds()
            if found:
                return found
            problem = self._problem()
            if problem:
                raise CheckFailedError(problem)
            if self._clock.now() >= deadline:
                raise CheckFailedError(f"{what}: not within {limit:.0f} s")
            await self._clock.sleep(POLL_SECONDS)


async def concurrently(*calls: Coroutine[Any, Any, T]) -> list[T]:
    """The results of calls at the same time. When one fails, the others are cancelled."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        await cancel_and_wait(*tasks, ignore_errors=True)
