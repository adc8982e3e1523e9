"""Log lines about what happens often: the first at once, the rest counted and summed up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

NOTICE_SECONDS: Final = 10.0


class Notice:
    """At most one warning in `seconds`; it says how many were left out before it."""

    def __init__(
        self,
        log: logging.Logger,
        seconds: float = NOTICE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._seconds = seconds
        self._clock = clock
        self._next = float("-inf")
        self._left_out = 0

    def warn(self, text: str) -> None:
        now = self._clock()
        if now < self._next:
            self._left_out += 1
            return
        self._next = now + self._seconds
        more = f" ({self._left_out} more since the last such line)" if self._left_out else ""
        self._left_out = 0
        self._log.warning("%s%s", text, more)


class RateFilter(logging.Filter):
    """Lets a message through once in `seconds`: for what any client can provoke at will."""

    def __init__(
        self, seconds: float = NOTICE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._seconds = seconds
        self._clock = clock
        self._next: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        if now < self._next.get(record.msg, float("-inf")):
            return False
        self._next[record.msg] = now + self._seconds
        return True
