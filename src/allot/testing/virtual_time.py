"""An event loop in which waiting takes no time: when nobody has anything to do, the clock jumps to the next timer.

Everything that sleeps through asyncio obeys it, without knowing. `sleep` of the shortest time returns when all others have
done what they could do by now, which is what tests want to wait for.
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
"""Short enough that no timer of anybody is due."""
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
STUCK_SECONDS: Final = 10.0
"""Real ones: how long another thread may take when nobody here has anything to do."""


class _PatientSelector(selectors.DefaultSelector):
    """Looks for input without waiting; the time it should have waited is counted instead."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped_seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            found = super().select(STUCK_SECONDS)
            if not found:
                raise RuntimeError("everybody waits, and nobody will ever wake them")
            return found
        found = super().select(0)
        if not found:
            self.skipped_seconds += timeout
        return found


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop for `asyncio.Runner(loop_factory=VirtualTimeLoop)`. It begins at zero."""

    def __init__(self) -> None:
        self._patient = _PatientSelector()
        super().__init__(self._patient)

    def time(self) -> float:
        return self._patient.skipped_seconds

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Done at once, in this thread: the clock would not wait for another one."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is for those who await the future
            future.set_exception(error)
        return future


class VirtualClock(LoopClock):
    """The loop's time as a calendar shows it."""

    def today(self) -> datetime:
        return START + timedelta(seconds=self.now())

    def whole_seconds(self) -> datetime:
        """As the scheduler reads it."""
        return self.today().replace(microsecond=0)


async def settled() -> None:
    """Returns when everybody has done what can be done without time going by."""
    await asyncio.sleep(MOMENT)


def run_in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
