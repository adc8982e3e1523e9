"""Ages of objects, and times in their fields."""

from __future__ import annotations

from datetime import datetime

from allot.api.durations import human_duration
from allot.api.raw import RawObject
from allot.api.times import read_time
from allot.apiserver.printers.column import UNKNOWN


def human_age(time: datetime | None, now: datetime) -> str:
    """How long ago, as `human_duration` writes it."""
    return UNKNOWN if time is None else human_duration((now - time).total_seconds())


def time_at(obj: RawObject, *path: str | int) -> datetime | None:
    """The time in a field; None if it is not set."""
    return read_time(obj.get(*path))
