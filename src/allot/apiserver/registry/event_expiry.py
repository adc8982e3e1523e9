"""Events are deleted when they have not been written for a while.

A sweep looks at all events, deletes those that are too old in small batches, and pauses in between. Several servers on
one store may sweep at the same time: what another one has deleted, or written again, is passed over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import msgspec

from allot.apiserver.pacing import Pacer
from allot.apiserver.watch_cache.cache import ResourceCache
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.storage.interface import Delete, RevisionConflictError, StorageError, Store

log = logging.getLogger(__name__)

DEFAULT_TTL: Final = timedelta(hours=1)
BATCH: Final = 50
"""Events that are deleted in one write."""
SWEEPS_PER_TTL: Final = 60
MIN_INTERVAL: Final = timedelta(seconds=1)
MAX_INTERVAL: Final = timedelta(minutes=1)

_Time = Annotated[datetime, msgspec.Meta(tz=True)]


class _Metadata(msgspec.Struct, rename="camel"):
    creation_timestamp: _Time | None = None


class _Times(msgspec.Struct, rename="camel"):
    """When an event was created, as far as the server knows, and when it happened last, as its writer says."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    last_timestamp: Any = None
    event_time: Any = None
    series: Any = None


_decoder: Final = msgspec.json.Decoder(_Times)


def last_written(value: bytes, now: datetime) -> datetime | None:
    """When a stored event was last written; None if that cannot be said.

    A recorder that counts an event again updates its time. Times in the future are ignored.
    """
    try:
        event = _decoder.decode(value)
    except msgspec.ValidationError:
        return None
    times = (event.metadata.creation_timestamp, *map(_time, _claimed(event)))
    return max((time for time in times if time is not None and time <= now), default=None)


def _claimed(event: _Times) -> Iterator[Any]:
    yield event.last_timestamp
    yield event.event_time
    if isinstance(event.series, dict):
        yield event.series.get("lastObservedTime")


def _time(value: Any) -> datetime | None:
    try:
        return msgspec.convert(value, _Time)
    except msgspec.ValidationError:
        return None


class EventExpiry:
    """Deletes old events of one server's store."""

    def __init__(
        self,
        store: Store,
        caches: Caches,
        clock: Callable[[], datetime],
        ttl: timedelta = DEFAULT_TTL,
    ) -> None:
        self._store = store
        self._cache: ResourceCache = caches.of(resource_named("", "events"))
        self._clock = clock
        self._ttl = ttl
        self._interval = min(max(ttl / SWEEPS_PER_TTL, MIN_INTERVAL), MAX_INTERVAL)

    async def run(self) -> None:
        """Sweep again and again; a TTL of zero keeps events for ever."""
        if not self._ttl:
            return
        while True:
            await asyncio.sleep(self._interval.total_seconds())
            try:
                await self.sweep()
            except StorageError as error:
                log.warning("old events are not deleted, it will be tried again: %s", error)
            except Exception:
                log.exception("old events are not deleted, it will be tried again")

    async def sweep(self) -> int:
        """Delete the events that are too old now; how many."""
        await self._cache.refresh()
        now = self._clock()
        old: list[StoredObject] = []
        deleted = 0
        async for stored in Pacer().each(self._cache.select(self._cache.prefix)):
            written = last_written(stored.entry.value, now)
            if written is not None and now - written >= self._ttl:
                old.append(stored)
            if len(old) == BATCH:
                deleted += await self._delete(old)
                old = []
        return deleted + await self._delete(old)

    async def _delete(self, events: Sequence[StoredObject]) -> int:
        if not events:
            return 0
        try:
            await self._store.write(*(Delete(each.key, each.revision) for each in events))
        except RevisionConflictError:
            # One of them has been written or deleted meanwhile: find out which.
            if len(events) == 1:
                return 0
            return sum([await self._delete([each]) for each in events])
        return len(events)
