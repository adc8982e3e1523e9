"""What views say about claims and events in a word."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from allot.api.claims import ResourceClaim
from allot.api.raw import RawObject
from allot.api.times import read_time


def claim_state(claim: ResourceClaim) -> str:
    """pending, allocated, reserved, or being deleted."""
    if claim.metadata.deletion_timestamp is not None:
        return "being deleted"
    if claim.status.allocation is None:
        return "pending"
    return "reserved" if claim.status.reserved_for else "allocated"


def event_time(event: RawObject) -> datetime | None:
    """When an event was observed last; of v1 or events.k8s.io."""
    times = (
        event_series(event).get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("deprecatedLastTimestamp"),
        event.get("eventTime"),
    )
    return next(filter(None, map(read_time, times)), None) or event.metadata.creation_timestamp


def event_series(event: RawObject) -> Mapping[str, Any]:
    """The series of a repeated event; empty if it is not repeated."""
    found = event.get("series", default=None)
    return found if isinstance(found, Mapping) else {}


def event_subject(event: RawObject) -> Mapping[str, Any]:
    """The reference of the object that an event is about; of v1 or events.k8s.io."""
    found = event.get("regarding", default=None) or event.get("involvedObject", default=None)
    return found if isinstance(found, Mapping) else {}
