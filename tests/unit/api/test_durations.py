"""Go durations."""

from __future__ import annotations

import pytest

from allot.api.durations import parse_duration

SECOND = 10**9


@pytest.mark.parametrize(
    ("string", "nanoseconds"),
    [
        ("0", 0),
        ("10ms", 10_000_000),
        ("1h30m", 5400 * SECOND),
        ("-1.5s", -1_500_000_000),
        ("+.5s", 500_000_000),
        ("1µs1ns", 1_001),
        ("", None),
        ("1", None),
        ("s", None),
        ("1d", None),
        ("1 s", None),
        ("1h2", None),  # Python 3.11.2 matches this by a possessive group
        ("1h2m.", None),
        ("300000000h", None),
    ],
)
def test_parse_duration(string: str, nanoseconds: int | None) -> None:
    assert nanoseconds == parse_duration(string)
