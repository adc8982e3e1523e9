"""SIGINT and SIGTERM stop the program: at once if possible, and within seconds in any case.

The handlers run between two instructions of the interpreter and not in the event loop: work that holds the loop
cannot keep the program from ending. Answered writes are durable, so nothing is lost.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

STOP_SECONDS: Final = 4.5
"""A program that has not stopped by then exits."""
STOPPED_LATE: Final = 1

_received: Final[list[int]] = []
"""The signals that have stopped this program."""


@contextmanager
def stopped_by_signals(
    stop: Callable[[], object],
    names: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM),
    *,
    seconds: float = STOP_SECONDS,
) -> Iterator[None]:
    """Within the block the first signal calls `stop` in the event loop; a second one ends the program at once."""
    loop = asyncio.get_running_loop()
    ending: list[threading.Timer] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        if ending:
            os._exit(128 + number)
        _received.append(number)
        timer = threading.Timer(seconds, os._exit, (STOPPED_LATE,))
        timer.daemon = True
        ending.append(timer)
        timer.start()
        with suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(stop)

    before = {name: signal.signal(name, handle) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def end_stopped_program(code: int = 0) -> None:
    """End the process now if a signal has stopped it. All must be closed.

    The interpreter would free all objects one by one, which takes seconds if there are millions.
    """
    if _received:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
