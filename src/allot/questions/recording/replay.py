"""Replays a recording into the store of an API server: its objects change as they did in the cluster.

Objects are written to the store itself, as they were recorded: no admission, no defaults of new objects, no new uids.
No controller and no scheduler may run on them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Any, Final

from allot.api.identities import GroupVersion
from allot.apiserver.kinds.resources import Resource as ServedResource
from allot.apiserver.kinds.resources import find
from allot.apiserver.watch_cache.caches import Caches, key_prefix
from allot.apiserver.watch_cache.codecs import codec_for
from allot.client.resources import Resource
from allot.client.wall_clock import utc_now
from allot.questions.recording.lines import RecordedKey
from allot.questions.recording.reader import Recording
from allot.questions.scheduling_fields import SCHEDULING_FIELDS
from allot.storage.interface import Delete, Operation, Put, Store

_AT_ONCE: Final = 100
"""Operations in one write."""
Sleep = Callable[[float], Awaitable[None]]


class Replay:
    """A recording, and the server that shows it."""

    def __init__(self, recording: Recording, store: Store, caches: Caches) -> None:
        self._recording = recording
        self._store = store
        self._caches = caches

    async def show(self, time: datetime) -> int:
        """Let the server have exactly the objects of this time; how many these are."""
        snapshot = self._recording.snapshot_at(time)
        operations: list[Operation] = []
        count = 0
        for resource in SCHEDULING_FIELDS:
            served = _served(resource)
            puts = [self._put(resource, obj) for obj in snapshot.of(resource)]
            wanted = {put.key for put in puts}
            page = await self._store.list(key_prefix(served))
            operations += [Delete(entry.key) for entry in page.entries if entry.key not in wanted]
            operations += puts
            count += len(puts)
        for start in range(0, len(operations), _AT_ONCE):
            await self._store.write(*operations[start : start + _AT_ONCE])
        return count

    async def play(
        self, after: datetime, upto: datetime, speed: float, sleep: Sleep = asyncio.sleep
    ) -> int:
        """Make the changes between two times, `speed` times as fast as they happened; how many these were."""
        now = after
        count = 0
        for change in self._recording.changes(after, upto):
            if change.at > now:
                await sleep((change.at - now).total_seconds() / speed)
                now = change.at
            await self._store.write(*self._operations(change.key, change.object))
            count += 1
        if upto > now:
            await sleep((upto - now).total_seconds() / speed)
        return count

    def _operations(self, key: RecordedKey, obj: Any | None) -> Iterable[Operation]:
        if obj is not None:
            return (self._put(key.resource, obj),)
        return (Delete(self._caches.key(_served(key.resource), *key.key)),)

    def _put(self, resource: Resource[Any], obj: Any) -> Put:
        served = _served(resource)
        codec = codec_for(served)
        decoded = codec.decode(resource.codec.encode(obj), resource.version, utc_now())
        body = codec.encode(decoded, codec.storage_version)
        return Put(self._caches.key(served, *resource.codec.key(obj)), body)


def _served(resource: Resource[Any]) -> ServedResource:
    found = find(GroupVersion(resource.group, resource.version), resource.plural)
    assert found is not None, resource
    return found
