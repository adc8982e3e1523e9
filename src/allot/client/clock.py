"""Clocks for control loops. Tests provide their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from allot.client.wall_clock import utc_now


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """`now` is monotonic and local to the process; `today` is the wall time."""

    def now(self) -> float: ...

    def today(self) -> datetime: ...

    async def sleep(self, seconds: float) -> None: ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer: ...


class LoopClock:
    """The clock of the running event loop."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def today(self) -> datetime:
        return utc_now()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)


def micro_time(moment: datetime) -> str:
    """A time as MicroTime: with microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
