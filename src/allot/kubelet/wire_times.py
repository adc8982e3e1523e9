"""Times as the API writes them: UTC, in whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def wire_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(text: Any, default: datetime) -> datetime:
    """The moment that was written; `default` if none was."""
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return default
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def seconds_between(earlier: datetime, later: datetime) -> float:
    return (later - earlier).total_seconds()
