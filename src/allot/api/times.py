"""Times as raw objects carry them: RFC 3339, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def written_time(moment: datetime) -> str:
    """A moment as the API writes it, in whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(value: Any) -> datetime | None:
    """The moment in a field; None if there is none, or something else."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
