"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from allot.cli.moments import read_duration, read_moment

NOW = datetime(2026, 5, 1, 14, 5, 30, tzinfo=UTC)
EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-01T10:00:00Z", "2026-05-01T10:00:00+00:00"),
        ("2026-05-01T10:00:00.5+02:00", "2026-05-01T08:00:00.500000+00:00"),
        ("2026-05-01T10:00:00", "2026-05-01T08:00:00+00:00"),
        ("14:05", "2026-05-01T12:05:00+00:00"),
        ("14:05:09", "2026-05-01T12:05:09+00:00"),
        ("-10m", "2026-05-01T13:55:30+00:00"),
        ("-1h30m", "2026-05-01T12:35:30+00:00"),
        ("-2d", "2026-04-29T14:05:30+00:00"),
    ],
)
def test_moments(text: str, expected: str) -> None:
    assert read_moment(text, NOW, EAST).astimezone(UTC).isoformat() == expected


@pytest.mark.parametrize(
    "text",
    ["", "now", "25:00", "14:65", "10m", "-10", "-", "-99999999999d", "2026-13-01T00:00:00Z"],
)
def test_others_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a time; say 2026-05-01T14:05:00Z"):
        read_moment(text, NOW)


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "5m-", "1y"])
def test_durations_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        read_duration(text)
