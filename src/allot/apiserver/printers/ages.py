"""Times and durations as people read them."""

from __future__ import annotations

from datetime import datetime

from allot.api.raw import RawObject
from allot.api.times import read_time
from allot.apiserver.printers.column import UNKNOWN


def human_age(time: datetime | None, now: datetime) -> str:
    """How long ago, in the two units that matter: `45s`, `3m20s`, `5h`, `2d3h`, `90d`."""
    return UNKNOWN if time is None else human_duration((now - time).total_seconds())


def human_duration(exact_seconds: float) -> str:
    """The same for a length of time. Clocks may differ by a second."""
    seconds = int(exact_seconds)
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    years = days // 365
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two(whole: int, unit: str, rest: int, rest_unit: str) -> str:
    return f"{whole}{unit}{rest}{rest_unit}" if rest else f"{whole}{unit}"


def time_at(obj: RawObject, *path: str | int) -> datetime | None:
    """The time in a field; None if it is not set."""
    return read_time(obj.get(*path))
