"""What happened in a cluster before the dashboard started, as far as its API server keeps it.

allot's API server says which resourceVersion a time had (`/history`). The objects of the earliest time that is kept are
listed, and a watch from there has all changes since. Events have a version and no time: that is found by bisection,
with most questions where most has changed. Other API servers, and users who may not read all of it, have no history.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

from allot.api.identities import ObjectKey
from allot.client import resources
from allot.client.client import Client
from allot.client.codecs import UnreadableEvent
from allot.client.errors import ApiStatusError, ClientError
from allot.client.history import resource_version_at
from allot.client.resources import Resource

KINDS: Final[tuple[Resource[Any], ...]] = (
    resources.NODES,
    resources.RESOURCE_SLICES,
    resources.DEVICE_TAINT_RULES,
    resources.RESOURCE_CLAIMS,
    resources.PODS,
)
"""What the floor plan and the figures are made of."""
KEPT_SECONDS: Final = 300.0
"""allot's API server keeps at least so much."""
MOMENT_SECONDS: Final = 1.0
"""Changes within this time are one moment."""
MAX_QUESTIONS: Final = 120
"""Questions for the version of a time."""
SEARCH_STEPS: Final = 12
MAX_OBJECTS: Final = 20_000
"""Of one kind. Larger clusters are not read twice: their history begins with the dashboard."""
QUIET_SECONDS: Final = 0.5
"""A watch has told the past when nothing more came for so long."""
READ_SECONDS: Final = 20.0


class PastChange(NamedTuple):
    """An object as it was from a time on."""

    at: float
    resource: Resource[Any]
    key: ObjectKey
    object: Any
    """None: it was deleted."""


class Past(NamedTuple):
    """The objects at a time, and what changed since."""

    begins: float
    objects: Sequence[tuple[Resource[Any], Any]]
    changes: Sequence[PastChange]
    """The oldest first."""


async def read_past(client: Client, now: float) -> Past | None:
    """What the API server keeps; None if it does not keep history, or the user may not read all of it."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            return await _read(_Versions(client), client, now)
    except (ClientError, TimeoutError, ValueError):
        return None


async def _read(versions: _Versions, client: Client, now: float) -> Past | None:
    begins = await _earliest(versions, now)
    if begins is None:
        return None
    first, last = await versions.at(begins), await versions.at(now)
    listed = await asyncio.gather(*(_listed(client, kind, first) for kind in KINDS))
    objects = [(kind, obj) for kind, found in zip(KINDS, listed, strict=True) for obj in found]
    watched = await asyncio.gather(*(_watched(client, kind, first, last) for kind in KINDS))
    events = sorted((each for found in watched for each in found), key=lambda each: each.version)
    moments = await _moments(versions, begins, now, [each.version for each in events])
    known = [version for version, _ in moments]
    changes = [
        PastChange(
            moments[bisect_left(known, each.version)][1], each.resource, each.key, each.object
        )
        for each in events
    ]
    return Past(begins, objects, changes)


class _Versions:
    """The last version at a time, asked for once per time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[float, int] = {}

    async def at(self, time: float) -> int:
        if time not in self._known:
            asked = datetime.fromtimestamp(time, UTC)
            self._known[time] = int(await resource_version_at(self._client, asked))
        return self._known[time]


async def _earliest(versions: _Versions, now: float) -> float | None:
    """The earliest time that is kept, about."""
    forgotten, kept = now - KEPT_SECONDS, None
    time = forgotten
    for _ in range(SEARCH_STEPS):
        try:
            await versions.at(time)
        except ApiStatusError as error:
            if error.code != 410:
                raise
            forgotten = time
        else:
            kept = time
            if time == now - KEPT_SECONDS:
                break
        time = (forgotten + (now if kept is None else kept)) / 2
    return kept


async def _moments(
    versions: _Versions, begins: float, now: float, changed: Sequence[int]
) -> list[tuple[int, float]]:
    """Versions and the first time that is known to have them, in order.

    Only times between which versions in `changed` came are told apart: leases, for example, change all the time.
    """
    first, last = await versions.at(begins), await versions.at(now)
    found = {now: last}
    intervals = [(begins - now, begins, now, first, last)]
    for _ in range(MAX_QUESTIONS):
        while intervals and bisect_right(changed, intervals[0][3]) == bisect_right(
            changed, intervals[0][4]
        ):
            heappop(intervals)  # nothing has changed
        if not intervals or -intervals[0][0] <= MOMENT_SECONDS:
            break
        _, start, end, before, after = heappop(intervals)
        middle = (start + end) / 2
        found[middle] = between = await versions.at(middle)
        heappush(intervals, (start - middle, start, middle, before, between))
        heappush(intervals, (middle - end, middle, end, between, after))
    earliest: dict[int, float] = {}
    for time in sorted(found):
        earliest.setdefault(found[time], time)
    return sorted(earliest.items())


class _Event(NamedTuple):
    version: int
    resource: Resource[Any]
    key: ObjectKey
    object: Any


async def _listed(client: Client, kind: Resource[Any], version: int) -> Sequence[Any]:
    page = await client.list_page(
        kind, resource_version=str(version), match="Exact", limit=MAX_OBJECTS, lenient=True
    )
    if page.continue_:
        raise ValueError("too many objects")
    return page.items


async def _watched(client: Client, kind: Resource[Any], first: int, last: int) -> list[_Event]:
    """The changes after one version, up to another one."""
    found: list[_Event] = []
    async with client.watch(kind, resource_version=str(first)) as batches:
        while True:
            try:
                async with asyncio.timeout(QUIET_SECONDS):
                    batch = await anext(batches)
            except (TimeoutError, StopAsyncIteration):
                return found
            for event in batch:
                version = int(event.resource_version)
                if version > last:
                    return found
                if event.object is not None and not isinstance(event, UnreadableEvent):
                    after = None if event.type == "DELETED" else event.object
                    found.append(_Event(version, kind, kind.codec.key(event.object), after))
                if version == last or len(found) > MAX_OBJECTS:
                    return found
