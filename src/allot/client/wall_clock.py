"""The time of the machine. Everything that can be tested with another time takes a clock as argument instead."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache


def utc_now() -> datetime:
    """The time of the machine."""
    return datetime.now(UTC)


def wall_clock() -> datetime:
    """The time of the machine in whole seconds, as most times in API objects."""
    return _moment(int(time.time()))


@lru_cache(2)
def _moment(second: int) -> datetime:
    """The current second, which one request asks for several times."""
    return datetime.fromtimestamp(second, UTC)
