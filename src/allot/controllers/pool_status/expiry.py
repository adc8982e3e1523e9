"""When a request expires and is deleted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from allot.api.pool_status import ResourcePoolStatusRequest, finished_at
from allot.controllers.pool_status.requests import PartialRequest

FINISHED_FOR: Final = timedelta(hours=1)
"""How long a completed request is kept without a TTL of its own."""
PENDING_FOR: Final = timedelta(hours=24)
"""How long a pending request is kept."""


def expires_at(
    request: PartialRequest | ResourcePoolStatusRequest, ttl_seconds: int | None
) -> datetime | None:
    """When to delete the request. None if it has no creation timestamp."""
    finished = finished_at(request.status.conditions) if request.status is not None else None
    if finished is not None:
        kept = FINISHED_FOR if ttl_seconds is None else timedelta(seconds=ttl_seconds)
        return finished + kept
    created = request.metadata.creation_timestamp
    return created + PENDING_FOR if created is not None else None
