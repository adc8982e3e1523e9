"""A store in etcd, which several processes can share.

Reads go to etcd and are linearizable. Watchers of this process share one watch (`etcd_feed.py`). `etcd_layout.py`
defines the keys in etcd, `etcd_client.py` handles errors and retries.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Self

from allot.proto import etcd_pb2 as pb
from allot.storage.broadcast import (
    DEFAULT_WINDOW_BYTES,
    DEFAULT_WINDOW_REVISIONS,
    Broadcast,
    HistoryPage,
)
from allot.storage.broadcast_watch import BroadcastWatch
from allot.storage.compaction import keep_compacting
from allot.storage.etcd_client import EtcdClient, RefusedError, TlsFiles
from allot.storage.etcd_feed import ChangeFeed, Moment, read_history, read_moment
from allot.storage.etcd_layout import MAX_OPERATIONS, Layout, first_conflict
from allot.storage.etcd_versions import warn_of_old_members
from allot.storage.interface import (
    MISSING,
    CompactedError,
    Delete,
    Entry,
    FutureRevisionError,
    Operation,
    Page,
    Put,
    RevisionConflictError,
    StorageError,
    Store,
    StoreUnavailableError,
    Watch,
)
from allot.storage.transactions import check_form, decide_changes
from allot.task_cancellation import cancel_and_wait

MAX_ENTRIES_PER_REQUEST: Final = 5000
MAX_CHANGES_PER_PAGE: Final = 1000
EMPTY_REVISION: Final = 1
"""The revision of an empty etcd."""
RETRY_SECONDS: Final = 1.0
"""How often a store whose writes fail checks whether they succeed again."""
NO_TLS_FILES: Final = TlsFiles()

logger = logging.getLogger(__name__)


class EtcdStore(Store):
    """For use in one event loop. Created by `connect`."""

    def __init__(
        self,
        client: EtcdClient,
        layout: Layout,
        start: Moment,
        *,
        window_revisions: int,
        window_bytes: int,
        history_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._client, self._layout = client, layout
        self._broadcast = Broadcast(
            start.revision,
            self._read_history,
            max_revisions=window_revisions,
            max_bytes=window_bytes,
        )
        self._feed = ChangeFeed(client, layout, self._broadcast, start)
        self._history_seconds, self._clock = history_seconds, clock
        self._compaction_seen: tuple[float, pb.KeyValue | None] | None = None
        """When the current compaction key was first observed, and the key."""
        self._calls = 0
        self._call_ended = asyncio.Event()
        self._trouble: str | None = None
        self._tasks = [
            asyncio.create_task(self._feed.run()),
            asyncio.create_task(self._keep_trying()),
            asyncio.create_task(warn_of_old_members(client)),
        ]

    @classmethod
    async def connect(
        cls,
        endpoints: Sequence[str],
        prefix: str = "/allot/",
        *,
        tls: TlsFiles = NO_TLS_FILES,
        timeout_seconds: float = 10.0,
        window_revisions: int = DEFAULT_WINDOW_REVISIONS,
        window_bytes: int = DEFAULT_WINDOW_BYTES,
        history_seconds: float = 300.0,
        compaction_interval_seconds: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Connect to any of the endpoints of one etcd cluster; `StorageError` if none answers.

        At least `history_seconds` of history are kept; one of the processes compacts older history periodically,
        unless the interval is 0.
        """
        layout = Layout(prefix)
        client = EtcdClient(endpoints, tls, timeout_seconds)
        try:
            start = await _begin(client, layout)
        except BaseException:
            await client.close()
            raise
        store = cls(
            client,
            layout,
            start,
            window_revisions=window_revisions,
            window_bytes=window_bytes,
            history_seconds=history_seconds,
            clock=clock,
        )
        if compaction_interval_seconds:
            compacting = keep_compacting(store.compact_old, compaction_interval_seconds)
            store._tasks.append(asyncio.create_task(compacting))
        return store

    @property
    def trouble(self) -> str | None:
        return self._trouble

    @property
    def announced(self) -> int:
        return self._broadcast.revision

    async def revision(self) -> int:
        with self._in_use():
            moment = await read_moment(self._client, self._layout)
            await self._feed.reached(moment.revision)
            return moment.revision

    async def get(self, key: str) -> Entry | None:
        with self._in_use():
            answer = await self._client.range(pb.RangeRequest(key=self._layout.key(key)))
            return self._layout.entry(answer.kvs[0]) if answer.kvs else None

    async def list(
        self, prefix: str, *, revision: int | None = None, after: str = "", limit: int = 0
    ) -> Page:
        with self._in_use():
            moment = await read_moment(self._client, self._layout)
            if revision is not None and revision > moment.revision:
                raise FutureRevisionError(revision, moment.revision)
            if revision is not None and revision < self._broadcast.oldest:
                raise CompactedError(revision, self._broadcast.oldest)
            # Read at etcd's current revision, which is readable even if etcd was compacted beyond the last write.
            shown, at = moment
            if revision is not None and revision < moment.revision:
                shown, at = revision, max(revision, EMPTY_REVISION)
            entries: list[Entry] = []
            while True:
                wanted = min(limit - len(entries), MAX_ENTRIES_PER_REQUEST) if limit else 0
                request = self._layout.page_request(
                    prefix, after, wanted or MAX_ENTRIES_PER_REQUEST, at
                )
                answer = await self._range_at(request, shown)
                entries += map(self._layout.entry, answer.kvs)
                remaining = answer.count - len(answer.kvs)
                if not remaining or (limit and len(entries) >= limit):
                    return Page(entries, shown, remaining)
                after = entries[-1].key

    async def write(self, *operations: Operation) -> int:
        check_form(operations)
        with self._in_use():
            if len(operations) > MAX_OPERATIONS:
                raise StorageError(
                    f"{len(operations)} operations in one write, etcd takes {MAX_OPERATIONS}"
                )
            if any(_surely_changes(operation) for operation in operations):
                return await self._transact(operations)
            return await self._change_if_needed(operations)

    def watch(self, prefix: str, after: int) -> Watch:
        return BroadcastWatch(self._broadcast, prefix, after)

    async def compact(self, revision: int) -> None:
        with self._in_use():
            moment = await read_moment(self._client, self._layout)
            if revision > moment.revision:
                raise FutureRevisionError(revision, moment.revision)
            if revision <= 0:
                return
            try:
                await self._client.compact(pb.CompactionRequest(revision=revision))
            except RefusedError as refusal:
                if "compacted" not in str(refusal):
                    raise
            self._broadcast.oldest = max(self._broadcast.oldest, revision)

    async def compact_old(self) -> None:
        """Compact history older than `history_seconds`, unless another process has.

        The compaction key has the revision at which it was written. A process that has observed it unchanged for
        that long rewrites it; the one that succeeds compacts to the previous value.
        """
        now = self._clock()
        key = self._layout.compaction
        moment = await read_moment(self._client, self._layout)
        answer = await self._client.range(pb.RangeRequest(key=key))
        found = answer.kvs[0] if answer.kvs else None
        if self._compaction_seen is None or self._compaction_seen[1] != found:
            self._compaction_seen = now, found
        since, _ = self._compaction_seen
        if found is not None and now - since < self._history_seconds:
            return
        request = pb.TxnRequest()
        version = found.version if found is not None else 0
        request.compare.add(target=pb.Compare.VERSION, key=key, version=version)
        request.success.add(request_put=pb.PutRequest(key=key, value=b"%d" % moment.revision))
        is_ours = (await self._client.transact(request)).succeeded
        if is_ours and found is not None:
            await self.compact(int(found.value))

    async def revision_at(self, time: float) -> int:
        await self.revision()  # with all writes of other processes
        return self._broadcast.revision_at(time)

    async def oldest(self) -> int:
        with self._in_use():
            key = self._layout.revision
            try:
                await self._client.range(
                    pb.RangeRequest(key=key, revision=EMPTY_REVISION, keys_only=True)
                )
            except RefusedError:
                return await self._compacted_revision()
            return 0

    async def close(self) -> None:
        if self._broadcast.closed:
            return
        self._broadcast.close()
        while self._calls:
            self._call_ended.clear()
            await self._call_ended.wait()
        try:
            await cancel_and_wait(*self._tasks)
        finally:
            await self._client.close()

    async def _compacted_revision(self) -> int:
        """etcd reports the compacted revision only to a watch that starts before it."""
        request = pb.WatchCreateRequest(key=self._layout.revision, start_revision=EMPTY_REVISION)

        async def ask() -> int:
            async with self._client.watch(request) as responses:
                async for response in responses:
                    if response.compact_revision:
                        return response.compact_revision
            raise StoreUnavailableError("etcd ended the watch")

        return await self._client.retry(ask, "etcd did not say what it has compacted")

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """Closing waits for all operations in this context."""
        if self._broadcast.closed:
            raise StoreUnavailableError("the store is closed")
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            self._call_ended.set()

    async def _range_at(self, request: pb.RangeRequest, revision: int) -> pb.RangeResponse:
        try:
            return await self._client.range(request)
        except RefusedError as refusal:
            if "compacted" in str(refusal):
                self._broadcast.oldest = await self.oldest()
                raise CompactedError(revision, self._broadcast.oldest) from refusal
            raise

    async def _transact(self, operations: Sequence[Operation]) -> int:
        answer = await self._try(self._layout.transaction(operations))
        if not answer.succeeded:
            raise first_conflict(operations, answer.responses)
        return answer.header.revision

    async def _try(self, request: pb.TxnRequest) -> pb.TxnResponse:
        """Write, and record success or failure."""
        try:
            answer = await self._client.transact(request)
        except StoreUnavailableError as error:
            if self._trouble is None:  # log once, not for each write
                logger.error("writes fail: %s", error)
            self._trouble = str(error)
            raise
        if self._trouble is not None:
            logger.warning("writes succeed again")
            self._trouble = None
        return answer

    async def _keep_trying(self) -> None:
        """Probe writes: servers that are not ready receive none, so recovery needs its own."""
        request = pb.TxnRequest()
        request.success.add(request_put=pb.PutRequest(key=self._layout.probe))
        while True:
            await asyncio.sleep(RETRY_SECONDS)
            if self._trouble is not None:
                with suppress(StorageError):
                    await self._try(request)

    async def _change_if_needed(self, operations: Sequence[Operation]) -> int:
        """A write that may change nothing: read first, then write with the found revisions as preconditions."""
        while True:
            moment = await read_moment(self._client, self._layout)
            answers = await asyncio.gather(
                *(
                    self._range_at(
                        pb.RangeRequest(
                            key=self._layout.key(operation.key), revision=moment.etcd_revision
                        ),
                        moment.revision,
                    )
                    for operation in operations
                )
            )
            found = [self._layout.entry(kv) for answer in answers for kv in answer.kvs]
            by_key = {entry.key: entry for entry in found}
            if not decide_changes(operations, by_key.get, moment.revision + 1):
                return moment.revision
            pinned = [_pin(operation, by_key.get(operation.key)) for operation in operations]
            with suppress(RevisionConflictError):
                return await self._transact(pinned)

    async def _read_history(self, prefix: str, after: int, upto: int) -> HistoryPage:
        if after < self._broadcast.oldest:
            raise CompactedError(after, self._broadcast.oldest)
        return await read_history(
            self._client, self._layout, prefix, after, upto, MAX_CHANGES_PER_PAGE
        )


async def _begin(client: EtcdClient, layout: Layout) -> Moment:
    """Create the revision key, if it is missing."""
    answer = await client.range(pb.RangeRequest(key=layout.revision, keys_only=True))
    if not answer.kvs:
        request = pb.TxnRequest()
        request.compare.add(target=pb.Compare.VERSION, key=layout.revision, version=0)
        request.success.add(request_put=pb.PutRequest(key=layout.revision))
        await client.transact(request)
    return await read_moment(client, layout)


def _surely_changes(operation: Operation) -> bool:
    """Whether it changes the key if its expectation holds."""
    match operation:
        case Put():
            return True
        case Delete(_, expected):
            return expected not in {None, MISSING}
        case _:
            return False


def _pin(operation: Operation, entry: Entry | None) -> Operation:
    """An unconditional delete, restricted to the found revision."""
    if isinstance(operation, Delete) and operation.expected is None:
        return Delete(operation.key, MISSING if entry is None else entry.revision)
    return operation
