"""An event loop in virtual time: when no task can run, the clock jumps to the next timer.

All code that sleeps through asyncio uses it without changes. `settled` returns when no other task can run without time
passing.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from allot.client.clock import LoopClock

T = TypeVar("T")

MOMENT: Final = 1e-6
"""Shorter than any timer."""
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
STUCK_SECONDS: Final = 10.0
"""In real time: how long to wait for another thread when no task can run."""


class _PatientSelector(selectors.DefaultSelector):
    """Polls without waiting; the timeout is added to the virtual time instead."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped_seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            found = super().select(STUCK_SECONDS)
            if not found:
                raise RuntimeError("deadlock: all tasks wait, and no timer is pending")
            return found
        found = super().select(0)
        if not found:
            self.skipped_seconds += timeout
        return found


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop for `asyncio.Runner(loop_factory=VirtualTimeLoop)`. Its time starts at zero."""

    def __init__(self) -> None:
        self._patient = _PatientSelector()
        super().__init__(self._patient)

    def time(self) -> float:
        return self._patient.skipped_seconds

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Runs in this thread: virtual time would not wait for another one."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is for those who await the future
            future.set_exception(error)
        return future


class VirtualClock(LoopClock):
    """A clock whose wall time follows the loop's time."""

    def today(self) -> datetime:
        return START + timedelta(seconds=self.now())

    def whole_seconds(self) -> datetime:
        """The wall time in whole seconds, for the scheduler."""
        return self.today().replace(microsecond=0)


async def settled() -> None:
    """Returns when no other task can run without time passing."""
    await asyncio.sleep(MOMENT)


def run_in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
