"""Times in raw objects: RFC 3339, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any


@lru_cache(64)
def written_time(moment: datetime) -> str:
    """A time as the API writes it, in whole seconds. Many writes share the current one."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(value: Any) -> datetime | None:
    """The time in a field; None if it is missing or not a time."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
