"""Schedules of CronJobs: `*/5 * * * *`, `@daily`, `@every 90m`, read and computed as Kubernetes does.

Five fields: minute, hour, day of month, month, day of week. A day matches if both of its fields do, or one of them
where neither starts with `*`. At a change of the clock, times that do not exist are skipped and repeated hours count twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

from allot.api.durations import NANOSECONDS, parse_duration

MAX_YEARS: Final = 5
"""How far ahead a matching time is looked for."""
_SECOND, _MINUTE, _HOUR, _DAY = (
    timedelta(seconds=1),
    timedelta(minutes=1),
    timedelta(hours=1),
    timedelta(days=1),
)


class ScheduleError(ValueError):
    """The text is not a schedule."""


class _Bounds(NamedTuple):
    low: int
    high: int
    names: Mapping[str, int] = {}


def _named(names: str, first: int) -> dict[str, int]:
    return {name: first + position for position, name in enumerate(names.split())}


_MINUTES: Final = _Bounds(0, 59)
_HOURS: Final = _Bounds(0, 23)
_DAYS: Final = _Bounds(1, 31)
_MONTHS: Final = _Bounds(1, 12, _named("jan feb mar apr may jun jul aug sep oct nov dec", 1))
_WEEKDAYS: Final = _Bounds(0, 6, _named("sun mon tue wed thu fri sat", 0))
_FIELDS: Final = (_MINUTES, _HOURS, _DAYS, _MONTHS, _WEEKDAYS)
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "


class _Field(NamedTuple):
    values: frozenset[int]
    is_any: bool
    """Whether it is `*`, so that the other day field decides alone."""


@dataclass(frozen=True)
class CronSchedule:
    """Times by the calendar of a time zone."""

    minutes: _Field
    hours: _Field
    days: _Field
    months: _Field
    weekdays: _Field

    def next_after(self, moment: datetime, zone: tzinfo = UTC) -> datetime | None:
        """The first time after `moment`, in UTC; None without one in the next years."""
        found = (moment + _SECOND).replace(microsecond=0).astimezone(UTC)
        last_year = found.astimezone(zone).year + MAX_YEARS
        while found.astimezone(zone).year <= last_year:
            local = found.astimezone(zone)
            if local.month not in self.months.values:
                found = _at(_next_month(local), zone)
            elif not self._matches_day(local):
                found = _at(_midnight(local) + _DAY, zone)
            elif local.hour not in self.hours.values:
                found = _hour(local) + _HOUR
            elif local.minute not in self.minutes.values or local.second:
                found = found.replace(second=0) + _MINUTE
            else:
                return found
        return None

    def _matches_day(self, local: datetime) -> bool:
        of_month = local.day in self.days.values
        of_week = local.isoweekday() % 7 in self.weekdays.values
        if self.days.is_any or self.weekdays.is_any:
            return of_month and of_week
        return of_month or of_week


@dataclass(frozen=True)
class EverySchedule:
    """Times at a fixed distance."""

    delay: timedelta

    def next_after(self, moment: datetime, zone: tzinfo = UTC) -> datetime | None:
        del zone
        return moment.replace(microsecond=0).astimezone(UTC) + self.delay


Schedule = CronSchedule | EverySchedule


def _hour(local: datetime) -> datetime:
    """The beginning of the hour, in UTC."""
    return local.astimezone(UTC) - timedelta(minutes=local.minute, seconds=local.second)


def _midnight(local: datetime) -> datetime:
    return local.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None, fold=0)


def _next_month(local: datetime) -> datetime:
    first = _midnight(local).replace(day=1)
    return (first + timedelta(days=32)).replace(day=1)


def _at(wall: datetime, zone: tzinfo) -> datetime:
    """A time by the clock of the zone, in UTC. One that does not exist is moved forward."""
    return wall.replace(tzinfo=zone).astimezone(UTC)


# --- reading ---


def parse_schedule(text: str) -> Schedule:
    """The schedule; `ScheduleError` with Kubernetes' words if it is not one."""
    if not text:
        raise ScheduleError("empty spec string")
    if text.startswith("@"):
        return _described(text)
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ScheduleError(
            f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]"
        )
    return CronSchedule(
        *(_field(field, bounds) for field, bounds in zip(fields, _FIELDS, strict=True))
    )


def _described(text: str) -> Schedule:
    if text in _DESCRIPTORS:
        return parse_schedule(_DESCRIPTORS[text])
    if text.startswith(_EVERY):
        duration = text.removeprefix(_EVERY)
        nanoseconds = parse_duration(duration)
        if nanoseconds is None:
            raise ScheduleError(
                f'failed to parse duration {text}: time: {_problem(duration)} "{duration}"'
            )
        return EverySchedule(timedelta(seconds=max(nanoseconds // NANOSECONDS, 1)))
    raise ScheduleError(f"unrecognized descriptor: {text}")


def _problem(duration: str) -> str:
    number = duration.lstrip("+-")
    unit = number.lstrip("0123456789.")
    if not unit and number:
        return "missing unit in duration"
    if unit.isalpha() and unit != number:
        return f'unknown unit "{unit}" in duration'
    return "invalid duration"


def _field(text: str, bounds: _Bounds) -> _Field:
    ranges = [_range(part, bounds) for part in text.split(",") if part]
    values = frozenset(value for found in ranges for value in found.values)
    return _Field(values, any(found.is_any for found in ranges))


def _range(text: str, bounds: _Bounds) -> _Field:
    """`*`, `5`, `1-5`, `*/2`, `1-5/2`; `3/4` is every fourth from the third on."""
    limits, *steps = text.split("/")
    first, *others = limits.split("-")
    is_any = first in ("*", "?")
    if is_any:
        low, high = bounds.low, bounds.high
    else:
        low = high = _number(first, bounds)
        if len(others) > 1:
            raise ScheduleError(f"too many hyphens: {text}")
        if others:
            high = _number(others[0], bounds)
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    step = 1
    if steps:
        step = _digits(steps[0], steps[0])
        if not others:
            high = bounds.high
        is_any = is_any and step <= 1
    _check_range(text, low, high, step, bounds)
    return _Field(frozenset(range(low, high + 1, step)), is_any)


def _check_range(text: str, low: int, high: int, step: int, bounds: _Bounds) -> None:
    if low < bounds.low:
        raise ScheduleError(f"beginning of range ({low}) below minimum ({bounds.low}): {text}")
    if high > bounds.high:
        raise ScheduleError(f"end of range ({high}) above maximum ({bounds.high}): {text}")
    if low > high:
        raise ScheduleError(f"beginning of range ({low}) beyond end of range ({high}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")


def _number(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    return named if named is not None else _digits(text, text)


_is_integer: Final = re.compile(r"[+-]?[0-9]+").fullmatch


def _digits(text: str, shown: str) -> int:
    if not _is_integer(text):
        raise ScheduleError(
            f'failed to parse int from {shown}: strconv.Atoi: parsing "{text}": invalid syntax'
        )
    number = int(text)
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {shown}")
    return number
