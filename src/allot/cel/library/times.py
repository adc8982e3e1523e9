"""Timestamps and durations: parsing, writing, and the fields of a date."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from functools import lru_cache
from typing import Final

from allot.api.durations import NANOSECONDS, parse_duration
from allot.cel.declarations import Function, function, overload
from allot.cel.errors import EvalError
from allot.cel.values import MAX_INT, MIN_INT, Duration, Timestamp, Value

_FIRST_SECOND: Final = -62_135_596_800
_LAST_SECOND: Final = 253_402_300_799
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def checked_timestamp(nanoseconds: int) -> Timestamp:
    """Only the years 1 to 9999 can be expressed."""
    if not _FIRST_SECOND <= nanoseconds // NANOSECONDS <= _LAST_SECOND:
        raise EvalError("timestamp overflow")
    return Timestamp(nanoseconds)


def checked_duration(nanoseconds: int) -> Duration:
    if not MIN_INT <= nanoseconds <= MAX_INT:
        raise EvalError("duration overflow")
    return Duration(nanoseconds)


_rfc3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII
).fullmatch


def parse_timestamp(text: str) -> Timestamp | None:
    """The time of an RFC 3339 string; None if it is not one."""
    match = _rfc3339(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
    zone = match[8]
    east = 0 if zone == "Z" else _offset_seconds(zone)
    try:
        # Python has no year 0; a time in it may still be in year 1 of another zone.
        moment = datetime(year or 4, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    seconds = _whole_seconds(moment) - east
    if year == 0:
        seconds -= _whole_seconds(datetime(4, 1, 1, tzinfo=UTC)) - _YEAR_ZERO
    fraction = (match[7] or "")[:9].ljust(9, "0")
    return checked_timestamp(seconds * NANOSECONDS + int(fraction))


_YEAR_ZERO: Final = _FIRST_SECOND - 366 * 86_400


def _whole_seconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(seconds=1)


def _offset_seconds(zone: str) -> int:
    seconds = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
    return -seconds if zone[0] == "-" else seconds


def timestamp_text(timestamp: Timestamp) -> str:
    seconds, nanoseconds = divmod(timestamp.nanoseconds, NANOSECONDS)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    return f"{moment.isoformat()[:19]}{fraction}Z"


def read_duration(string: str) -> Duration | None:
    """The duration that a string such as `1h30m` or `-1.5s` spells; None if it is not one."""
    nanoseconds = parse_duration(string)
    return None if nanoseconds is None else Duration(nanoseconds)


def duration_text(duration: Duration) -> str:
    """Seconds, as `5400s` or `0.5s`."""
    whole, rest = divmod(abs(duration.nanoseconds), NANOSECONDS)
    text = format(Decimal(repr(whole + rest / NANOSECONDS)), "f").removesuffix(".0")
    return f"{'-' if duration.nanoseconds < 0 else ''}{text}s"


_decimal_number: Final = re.compile(r"[+-]?[0-9]{1,18}").fullmatch


def _number(text: str) -> int:
    if _decimal_number(text) is None:
        raise EvalError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    return int(text)


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo | timedelta:
    """A zone by name or by offset from UTC; any number of hours is allowed."""
    if ":" in name:
        hours, _, minutes = name.partition(":")
        total, rest = _number(hours) * 60, _number(minutes)
        return timedelta(minutes=total - rest if name.startswith("-") else total + rest)
    if name in ("", "UTC"):
        return UTC
    try:
        from zoneinfo import ZoneInfo  # takes long to import, and few expressions have a zone

        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise EvalError(f"unknown time zone {name}") from None


def _moment(timestamp: Timestamp, zone: str) -> datetime:
    """The date and time of day in a zone. Fractions of a second are dropped."""
    moment = _EPOCH + timedelta(seconds=timestamp.nanoseconds // NANOSECONDS)
    try:
        place = _zone(zone)
        return moment + place if isinstance(place, timedelta) else moment.astimezone(place)
    except OverflowError:
        raise EvalError("timestamp overflow") from None


_FIELDS: Final[dict[str, tuple[str, Callable[[datetime], int]]]] = {
    "getFullYear": ("year", lambda moment: moment.year),
    "getMonth": ("month", lambda moment: moment.month - 1),
    "getDayOfYear": ("day_of_year", lambda moment: moment.timetuple().tm_yday - 1),
    "getDate": ("day_of_month_1_based", lambda moment: moment.day),
    "getDayOfMonth": ("day_of_month", lambda moment: moment.day - 1),
    "getDayOfWeek": ("day_of_week", lambda moment: moment.isoweekday() % 7),
    "getHours": ("hours", lambda moment: moment.hour),
    "getMinutes": ("minutes", lambda moment: moment.minute),
    "getSeconds": ("seconds", lambda moment: moment.second),
}
_DURATION_UNITS: Final = {
    "getHours": 3600 * NANOSECONDS,
    "getMinutes": 60 * NANOSECONDS,
    "getSeconds": NANOSECONDS,
    "getMilliseconds": 1_000_000,
}


def _milliseconds(timestamp: Timestamp, zone: str = "") -> int:
    _moment(timestamp, zone)
    return timestamp.nanoseconds % NANOSECONDS // 1_000_000


def _accessor(name: str) -> Function:
    def field(timestamp: Timestamp, zone: str = "") -> Value:
        return read(_moment(timestamp, zone))

    def length(duration: Duration) -> Value:
        whole = abs(duration.nanoseconds) // unit
        return whole if duration.nanoseconds >= 0 else -whole

    if name == "getMilliseconds":
        label, implementation = "milliseconds", _milliseconds
    else:
        label, read = _FIELDS[name]
        implementation = field  # type: ignore[assignment]
    overloads = [
        overload(f"timestamp_to_{label}", "timestamp.() -> int", implementation),
        overload(f"timestamp_to_{label}_with_tz", "timestamp.(string) -> int", implementation),
    ]
    if name in _DURATION_UNITS:
        unit = _DURATION_UNITS[name]
        overloads.append(overload(f"duration_to_{label}", "duration.() -> int", length))
    return function(name, *overloads)


FUNCTIONS: Final = (*map(_accessor, _FIELDS), _accessor("getMilliseconds"))
