"""Times as people write them: RFC 3339, HH:MM[:SS] of today, or so long ago (-10m)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo
from typing import Final

FORMS: Final = "2026-05-01T14:05:00Z, 14:05 or 14:05:30 (today), or -10m"
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_AGO: Final = re.compile(r"-((?:\d+(?:\.\d+)?[smhd])+)")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")


def read_moment(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """The time that is meant; `ValueError` if none is. `zone` is that of times without one: by default the machine's."""
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            return now - read_duration(ago[1])
        clock = _CLOCK.fullmatch(text)
        if clock is not None:
            hour, minute, second = (int(part or 0) for part in clock.groups())
            today = now.astimezone(zone)
            return today.replace(hour=hour, minute=minute, second=second, microsecond=0)
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ValueError(f"{text}: not a time; say {FORMS}") from None
    if found.tzinfo is not None:
        return found
    return found.replace(tzinfo=zone) if zone is not None else found.astimezone()


def is_time_of_day(text: str) -> bool:
    """Whether only a time of day is given."""
    return _CLOCK.fullmatch(text) is not None


def read_duration(text: str) -> timedelta:
    """`90s`, `10m`, `1h30m`, `2d`; `ValueError` for anything else."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text}: not a duration; say 90s, 10m, 1h30m or 2d")
    try:
        return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in parts))
    except OverflowError:
        raise ValueError(f"{text}: too long") from None
