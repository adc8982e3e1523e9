"""One watch over all of a store in etcd, which feeds the watchers of this process.

After a lost connection it resumes at the last revision, on any member that responds. A member that was just started may
send old revisions again while it catches up: revisions that are not newer are skipped, so that nothing is lost or
repeated. If etcd has compacted the missed revisions, the watchers are cut off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from allot.proto import etcd_pb2 as pb
from allot.storage.broadcast import Broadcast, HistoryPage
from allot.storage.etcd_client import (
    BACKOFF,
    EtcdClient,
    RefusedError,
)
from allot.storage.etcd_layout import Layout
from allot.storage.interface import CompactedError, StorageError, StoreUnavailableError
from allot.storage.transactions import Batch

logger = logging.getLogger(__name__)


class Moment(NamedTuple):
    """The revision of a store, and etcd's revision: the store has no change in between."""

    revision: int
    etcd_revision: int


async def read_moment(client: EtcdClient, layout: Layout, at: int = 0) -> Moment:
    """The current revisions, or those at etcd's revision `at`."""
    answer = await client.range(pb.RangeRequest(key=layout.revision, keys_only=True, revision=at))
    if not answer.kvs:
        raise StorageError(f"{layout.revision.decode()} is missing in etcd")
    return Moment(answer.kvs[0].mod_revision, at or answer.header.revision)


async def is_compacted(client: EtcdClient, layout: Layout, revision: int) -> bool:
    """Whether etcd has compacted `revision`.

    etcd does not report this to a watch that starts exactly at the compacted revision, which may lack deletions. It must
    be checked this way after the watch was created.
    """
    request = pb.RangeRequest(key=layout.revision, keys_only=True, revision=max(revision, 1))
    try:
        await client.range(request)
    except RefusedError as refusal:
        if "compacted" not in str(refusal):
            raise
        return True
    return False


class ChangeFeed:
    """Publishes the changes in etcd to a broadcast."""

    def __init__(
        self, client: EtcdClient, layout: Layout, broadcast: Broadcast, start: Moment
    ) -> None:
        self._client, self._layout, self._broadcast = client, layout, broadcast
        self._next = start.etcd_revision + 1
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def run(self) -> None:
        """Run until cancelled."""
        failures = 0
        level = logging.WARNING
        while True:
            start = self._next
            try:
                await self._follow()
            except StorageError as error:
                logger.log(level, "the watch on etcd ended, retrying: %s", error)
                level = logging.INFO  # warn once, until changes arrive again
            except Exception:
                logger.exception("the watch on etcd failed, retrying")
            if self._next > start:
                failures = 0
                level = logging.WARNING
            failures += 1
            await asyncio.sleep(BACKOFF.seconds(failures))

    async def reached(self, revision: int) -> None:
        """Wait until all changes up to `revision` are published."""
        if self._broadcast.revision >= revision:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((revision, waiter))
        try:
            async with asyncio.timeout(self._client.timeout_seconds):
                await waiter
        except TimeoutError:
            raise StoreUnavailableError(f"etcd's watch has not come to {revision}") from None
        finally:
            self._waiting.remove((revision, waiter))

    async def _follow(self) -> None:
        await self._notice_lost_writes()
        key, end = self._layout.whole
        request = pb.WatchCreateRequest(
            key=key, range_end=end, start_revision=self._next, prev_kv=True
        )
        async with self._client.watch(request) as responses:
            async for response in responses:
                if response.created and await self._begins_with_compacted():
                    await self._skip_compacted(self._next)
                    return
                if response.canceled:
                    if not response.compact_revision:
                        raise StoreUnavailableError(
                            f"etcd ended the watch: {response.cancel_reason}"
                        )
                    await self._skip_compacted(response.compact_revision)
                    return
                events = newer_than(self._next - 1, response.events)
                if events:
                    try:
                        await self._publish(list(self._layout.batches(events)))
                    except CompactedError as error:
                        await self._skip_compacted(error.oldest)
                        return
                    self._next = events[-1].kv.mod_revision + 1

    async def _begins_with_compacted(self) -> bool:
        """Whether it starts at a compacted revision. Later compactions are reported by the watch."""
        client, layout = self._client, self._layout
        return await is_compacted(client, layout, self._next - 1) and not await is_compacted(
            client, layout, self._next
        )

    async def _publish(self, batches: list[tuple[int, Batch]]) -> None:
        """In portions, so that watchers are not cut off by a burst after an interruption."""
        portion = max(1, self._broadcast.max_revisions // 2)
        for first in range(0, len(batches), portion):
            part = batches[first : first + portion]
            self._broadcast.publish([batch for _, batch in part if batch])
            self._broadcast.advance(part[-1][0])
            await asyncio.sleep(0)
        for revision, waiter in self._waiting:
            if revision <= self._broadcast.revision and not waiter.done():
                waiter.set_result(None)

    async def _skip_compacted(self, compacted: int) -> None:
        """Resume after the compacted revision. If changes were missed, the watchers are cut off."""
        moment = await read_moment(self._client, self._layout, compacted)
        if moment.revision != self._broadcast.revision:
            error = CompactedError(self._broadcast.revision, compacted)
            self._broadcast.restart(moment.revision, error)
        self._next = compacted + 1

    async def _notice_lost_writes(self) -> None:
        """Detects an etcd that was restored from a backup or lost writes."""
        moment = await read_moment(self._client, self._layout)
        if moment.revision < self._broadcast.revision:
            logger.error(
                "etcd went back from revision %d to %d", self._broadcast.revision, moment.revision
            )
            error = CompactedError(self._broadcast.revision, moment.revision)
            self._broadcast.restart(moment.revision, error)
            self._next = moment.etcd_revision + 1


async def read_history(
    client: EtcdClient, layout: Layout, prefix: str, after: int, upto: int, max_changes: int
) -> HistoryPage:
    """Past changes under `prefix`, by a separate watch on any member. Raises `CompactedError`."""
    key, end = layout.whole
    request = pb.WatchCreateRequest(key=key, range_end=end, start_revision=after + 1, prev_kv=True)
    return await client.retry(
        lambda: _read_page(client, layout, request, prefix, upto, max_changes),
        f"etcd did not show the changes after {after}",
    )


async def _read_page(
    client: EtcdClient,
    layout: Layout,
    request: pb.WatchCreateRequest,
    prefix: str,
    upto: int,
    max_changes: int,
) -> HistoryPage:
    after = request.start_revision - 1
    seen = after
    found: list[Batch] = []
    count = 0
    async with client.watch(request) as responses:
        async for response in responses:
            if response.compact_revision:
                raise CompactedError(after, response.compact_revision)
            for revision, batch in layout.batches(newer_than(seen, response.events)):
                seen = revision
                part = tuple(change for change in batch if change.key.startswith(prefix))
                if part:
                    found.append(part)
                    count += len(part)
                if revision >= upto or count >= max_changes:
                    if await is_compacted(client, layout, after):
                        raise CompactedError(after, after + 1)
                    return HistoryPage(found, revision)
    raise StoreUnavailableError("etcd ended the watch")


def newer_than(revision: int, events: Iterable[pb.Event]) -> list[pb.Event]:
    """The events after `revision`, without repeated or unordered ones."""
    found: list[pb.Event] = []
    for number, group in groupby(events, lambda event: event.kv.mod_revision):
        if number > revision:
            found += group
            revision = number
    return found
