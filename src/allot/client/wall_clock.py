"""The time of the machine. Everything that can be tested with another time takes a clock as argument instead."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The time of the machine."""
    return datetime.now(UTC)


def wall_clock() -> datetime:
    """The time of the machine in whole seconds, as most times in API objects."""
    return utc_now().replace(microsecond=0)
