"""Arguments of plugins: the error for wrong ones, and Go durations in them."""

from __future__ import annotations

from typing import Any

from allot.api.durations import NANOSECONDS, parse_duration


class ConfigurationError(Exception):
    """The configuration cannot be used; the message names the field and the cause."""


def duration_seconds(value: Any, path: str) -> float:
    """A duration as Go writes it: `10ms`, `1m30s`, `0s`."""
    if value == 0 and value is not False:
        return 0.0
    nanoseconds = parse_duration(value) if isinstance(value, str) else None
    if nanoseconds is None:
        raise ConfigurationError(f"{path}: {value!r} is not a duration such as 10s or 1m30s")
    return nanoseconds / NANOSECONDS
