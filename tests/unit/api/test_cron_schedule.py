"""Schedules: what is accepted, with which words it is refused, and the next times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from allot.api.cron_schedule import ScheduleError, parse_schedule

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)  # a Thursday


def times(text: str, begin: datetime, count: int, zone: str = "UTC") -> list[str]:
    """The next times, by the clock of the zone."""
    schedule, place = parse_schedule(text), ZoneInfo(zone)
    found: list[str] = []
    moment: datetime | None = begin
    for _ in range(count):
        assert moment is not None
        moment = schedule.next_after(moment, place)
        if moment is None:
            break
        found.append(f"{moment.astimezone(place):%m-%d %H:%M}")
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*/20 * * * *", ["01-01 00:20", "01-01 00:40", "01-01 01:00"]),
        ("0 9-17/4 * * *", ["01-01 09:00", "01-01 13:00", "01-01 17:00"]),
        ("30 6 * * mon-fri", ["01-01 06:30", "01-02 06:30", "01-05 06:30"]),
        ("0 0 13 * FRI", ["01-02 00:00", "01-09 00:00", "01-13 00:00"]),
        ("0 0 */10 * fri", ["01-02 00:00", "01-09 00:00", "01-11 00:00"]),
        ("0 0 ? * 0", ["01-04 00:00", "01-11 00:00", "01-18 00:00"]),
        ("5/25 3 * * *", ["01-01 03:05", "01-01 03:30", "01-01 03:55"]),
        ("0 12 1,15 feb *", ["02-01 12:00", "02-15 12:00", "02-01 12:00"]),
        ("1,,2 0 * * *", ["01-01 00:01", "01-01 00:02", "01-02 00:01"]),
        ("@hourly", ["01-01 01:00", "01-01 02:00", "01-01 03:00"]),
        ("@weekly", ["01-04 00:00", "01-11 00:00", "01-18 00:00"]),
        ("@every 90m", ["01-01 01:30", "01-01 03:00", "01-01 04:30"]),
        ("0 0 31 2 *", []),
    ],
)
def test_next_times(text: str, expected: list[str]) -> None:
    assert times(text, BEGIN, 3) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("*/1/2 * * * *", "too many slashes: */1/2"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        (
            "x * * * *",
            'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax',
        ),
        ("@fortnightly", "unrecognized descriptor: @fortnightly"),
        (
            "@every 5",
            'failed to parse duration @every 5: time: missing unit in duration "5"',
        ),
    ],
)
def test_refusals(text: str, why: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        parse_schedule(text)

    assert str(refused.value) == why


def test_times_that_do_not_exist_are_skipped() -> None:
    """In Berlin, 02:30 does not exist on 29 March 2026."""
    begin = datetime(2026, 3, 27, 12, tzinfo=UTC)

    assert times("30 2 * * *", begin, 3, "Europe/Berlin") == [
        "03-28 02:30",
        "03-30 02:30",
        "03-31 02:30",
    ]


def test_a_repeated_hour_counts_twice() -> None:
    """In Berlin, 02:30 exists twice on 25 October 2026."""
    begin = datetime(2026, 10, 24, 12, tzinfo=UTC)

    assert times("30 2 * * *", begin, 3, "Europe/Berlin") == [
        "10-25 02:30",
        "10-25 02:30",
        "10-26 02:30",
    ]


def test_half_hour_zones() -> None:
    assert times("0 6 * * *", BEGIN, 2, "Asia/Kolkata") == ["01-01 06:00", "01-02 06:00"]


def test_agrees_with_looking_at_every_minute() -> None:
    """For a month: no time is skipped, none is invented."""
    schedule = parse_schedule("*/7 3,15 10-20/3 * tue")
    expected = [
        moment
        for minute in range(31 * 24 * 60)
        if (moment := BEGIN + timedelta(minutes=minute)).minute % 7 == 0
        and moment.hour in (3, 15)
        and (moment.day in (10, 13, 16, 19) or moment.isoweekday() == 2)
    ]

    found: list[datetime] = []
    following = schedule.next_after(BEGIN)
    while following is not None and following < BEGIN + timedelta(days=31):
        found.append(following)
        following = schedule.next_after(following)

    assert found == expected
