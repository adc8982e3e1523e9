"""Events of pods, of the group events.k8s.io or of the core group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from allot.api.raw import RawObject
from allot.api.times import read_time
from allot.scheduler.core.pod_status import FAILED_SCHEDULING
from allot.scheduler.plugins.dynamic_resources.binding_conditions import (
    BINDING_FAILED,
    BINDING_TIMEOUT,
)
from allot.scheduler.plugins.dynamic_resources.binding_reports import (
    BINDING_CONDITIONS_PENDING,
    BINDING_TIMEOUT_ANNOTATION,
)
from allot.scheduler.state.pods import PodInfo

FAILED_CLAIM_CREATION: Final = "FailedResourceClaimCreation"
"""The reason of the claim controller's event when it cannot create a claim."""
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class PodEvent(NamedTuple):
    """An event of a pod, with its count and last time."""

    reason: str
    note: str
    last_at: datetime | None
    times: int
    annotations: Mapping[str, str]


def events_of(events: Iterable[RawObject], pod: PodInfo) -> list[PodEvent]:
    """The events of a pod, by uid; the latest last."""
    mine = [_read(event) for event in events if _is_about(event, pod)]
    return sorted(mine, key=lambda event: event.last_at or _LONG_AGO)


def claim_creation_failure(events: Iterable[PodEvent], entry: str) -> PodEvent | None:
    """The claim controller's latest event about an entry of the pod's claims."""
    prefix = f"PodResourceClaim {entry}: "
    found = None
    for event in events:
        if event.reason == FAILED_CLAIM_CREATION and event.note.startswith(prefix):
            found = event._replace(note=event.note.removeprefix(prefix))
    return found


def binding_failures(events: Iterable[PodEvent]) -> Iterator[PodEvent]:
    """Attempts that failed because devices did not become ready (KEP-5007)."""
    for event in events:
        for text in (BINDING_FAILED, BINDING_TIMEOUT):
            _, is_there, rest = event.note.partition(text)
            if event.reason == FAILED_SCHEDULING and is_there:
                yield event._replace(note=f"{text}{rest}")


def reported_binding_timeout(events: Iterable[PodEvent]) -> float | None:
    """The binding timeout in seconds, as the pod's scheduler recorded it; None if it did not."""
    seconds = None
    for event in events:
        if event.reason == BINDING_CONDITIONS_PENDING:
            try:
                seconds = float(event.annotations[BINDING_TIMEOUT_ANNOTATION])
            except (KeyError, ValueError):
                continue
    return seconds


def _is_about(event: RawObject, pod: PodInfo) -> bool:
    about: Mapping[str, Any] = (
        event.get("regarding", default=None) or event.get("involvedObject", default=None) or {}
    )
    named = about.get("kind"), about.get("namespace"), about.get("name")
    return named == ("Pod", *pod.key) and about.get("uid", pod.uid) == pod.uid


def _read(event: RawObject) -> PodEvent:
    series: Mapping[str, Any] = event.get("series", default=None) or {}
    times = (
        series.get("lastObservedTime"),
        event.get("deprecatedLastTimestamp", default=None),
        event.get("lastTimestamp", default=None),
        event.get("eventTime", default=None),
    )
    counts = (
        series.get("count"),
        event.get("deprecatedCount", default=None),
        event.get("count", default=None),
    )
    return PodEvent(
        event.get("reason", default=""),
        event.get("note", default=None) or event.get("message", default=None) or "",
        next(filter(None, map(read_time, times)), None) or event.metadata.creation_timestamp,
        next((int(count) for count in counts if count), 1),
        event.metadata.annotations,
    )
