"""Durations as Go writes them (`10ms`, `1h30m`, `-1.5s`, `0`), and as kubectl shows them."""

from __future__ import annotations

import re
from typing import Final

NANOSECONDS: Final = 1_000_000_000
"""In a second."""

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5
    "μs": 1_000,  # U+03BC
    "ms": 1_000_000,
    "s": NANOSECONDS,
    "m": 60 * NANOSECONDS,
    "h": 3600 * NANOSECONDS,
}
# Possessive quantifiers (`++`): long strings are matched in linear time. They are for single characters only: groups with
# choices inside match too much before Python 3.11.5.
_PART: Final = r"(?:\d++\.?+\d*+|\.\d++)(?:ns|us|µs|μs|ms|s|m|h)"
_duration: Final = re.compile(rf"([-+]?)((?:{_PART})+|0)", re.ASCII).fullmatch
_parts: Final = re.compile(r"(\d*+)\.?+(\d*+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII).findall
_MAX_DIGITS: Final = 40


def parse_duration(string: str) -> int | None:
    """Nanoseconds; None if the string is not a duration, or one that int64 cannot hold."""
    match = _duration(string)
    if match is None:
        return None
    nanoseconds = 0
    for whole, fraction, unit in _parts(match[2]):
        if len(whole) > _MAX_DIGITS:
            return None
        scale = _UNITS[unit]
        nanoseconds += int(whole or "0") * scale
        digits = fraction[:_MAX_DIGITS]
        nanoseconds += int(digits or "0") * scale // 10 ** len(digits)
    if match[1] == "-":
        nanoseconds = -nanoseconds
    return nanoseconds if -(2**63) <= nanoseconds < 2**63 else None


def human_duration(exact_seconds: float) -> str:
    """A duration as kubectl shows ages, in the units that matter: `45s`, `3m20s`, `5h`, `2d3h`, `90d`.

    Clocks may differ by a second.
    """
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
