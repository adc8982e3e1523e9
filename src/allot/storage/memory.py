"""A store in memory. It keeps all history until it is compacted or too large."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from itertools import chain
from typing import Final, Self

from allot.storage.broadcast import (
    DEFAULT_WINDOW_BYTES,
    DEFAULT_WINDOW_REVISIONS,
    Broadcast,
    HistoryPage,
    cost_of,
)
from allot.storage.broadcast_watch import BroadcastWatch
from allot.storage.entries import Entries
from allot.storage.interface import (
    CompactedError,
    Entry,
    FutureRevisionError,
    Operation,
    Page,
    Store,
    StoreUnavailableError,
    Watch,
)
from allot.storage.transactions import Batch, check_form, decide_changes
from allot.task_cancellation import cancel_and_wait

DEFAULT_HISTORY_BYTES: Final = 256 << 20
"""When the history grows beyond this, the older half is compacted."""


class MemoryStore(Store):
    """Entries and a list of all changes. For use in one event loop."""

    def __init__(
        self,
        *,
        window_revisions: int = DEFAULT_WINDOW_REVISIONS,
        window_bytes: int = DEFAULT_WINDOW_BYTES,
        page_revisions: int = 500,
        history_bytes: int = DEFAULT_HISTORY_BYTES,
    ) -> None:
        self._entries = Entries()
        self._log: list[Batch] = []
        self._log_cost = 0
        self._history_bytes = history_bytes
        self._page_revisions = page_revisions
        self._compacting: asyncio.Task[None] | None = None
        self._broadcast = Broadcast(
            0, self._read_history, max_revisions=window_revisions, max_bytes=window_bytes
        )

    @classmethod
    async def open(cls, *, history_seconds: float = 300.0) -> Self:
        """A store that compacts history older than `history_seconds`, or up to twice that."""
        store = cls()
        store._compacting = asyncio.create_task(store._keep_compacting(history_seconds))
        return store

    async def _keep_compacting(self, history_seconds: float) -> None:
        while True:
            then = self._broadcast.revision
            await asyncio.sleep(history_seconds)
            await self.compact(then)

    @property
    def announced(self) -> int:
        return self._broadcast.revision

    @property
    def known_revision(self) -> int:
        return self._broadcast.revision

    async def revision(self) -> int:
        return self._broadcast.revision

    async def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    async def list(
        self, prefix: str, *, revision: int | None = None, after: str = "", limit: int = 0
    ) -> Page:
        current = self._broadcast.revision
        if revision is None or revision == current:
            return self._entries.page(prefix, after, limit, current)
        if revision > current:
            raise FutureRevisionError(revision, current)
        if revision < self._broadcast.oldest:
            raise CompactedError(revision, self._broadcast.oldest)
        changes_since = chain.from_iterable(reversed(self._log[self._index_after(revision) :]))
        past = {change.key: change.previous for change in changes_since}
        return self._entries.page(prefix, after, limit, revision, past)

    async def write(self, *operations: Operation) -> int:
        check_form(operations)
        if self._broadcast.closed:
            raise StoreUnavailableError("the store is closed")
        batch = decide_changes(operations, self._entries.get, self._broadcast.revision + 1)
        if batch:
            self._log.append(batch)
            self._log_cost += cost_of(batch, self._broadcast.oldest)
            self._entries.apply(batch)
            self._broadcast.publish([batch])
            if self._log_cost > self._history_bytes:
                await self.compact(self._log[len(self._log) // 2][0].revision)
        return self._broadcast.revision

    def watch(self, prefix: str, after: int) -> Watch:
        return BroadcastWatch(self._broadcast, prefix, after)

    async def compact(self, revision: int) -> None:
        if revision > self._broadcast.revision:
            raise FutureRevisionError(revision, self._broadcast.revision)
        if revision > self._broadcast.oldest:
            self._broadcast.oldest = revision
            del self._log[: self._index_after(revision)]
            self._log_cost = sum(cost_of(batch, revision) for batch in self._log)

    async def revision_at(self, time: float) -> int:
        return self._broadcast.revision_at(time)

    async def oldest(self) -> int:
        return self._broadcast.oldest

    async def close(self) -> None:
        await cancel_and_wait(self._compacting)
        self._broadcast.close()

    async def _read_history(self, prefix: str, after: int, upto: int) -> HistoryPage:
        if after < self._broadcast.oldest:
            raise CompactedError(after, self._broadcast.oldest)
        first = self._index_after(after)
        batches = self._log[first : first + self._page_revisions]
        parts = (
            tuple(change for change in batch if change.key.startswith(prefix)) for batch in batches
        )
        return HistoryPage([part for part in parts if part], batches[-1][0].revision)

    def _index_after(self, revision: int) -> int:
        return bisect_right(self._log, revision, key=lambda batch: batch[0].revision)
