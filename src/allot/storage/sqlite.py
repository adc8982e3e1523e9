"""A store in an SQLite file, for one process at a time.

The current entries are in memory, so that reads never wait for the disk; the file has them and their history
(`revision_log.py`). Writes that arrive during a commit are decided and committed together (group commit,
`sqlite_writes.py`). Each still has its own revision and result.

    write() ─► queue ─► decide against entries ─► append, fsync ─► entries, watchers, answers
    write() ─► queue ──────── waits ────────────────────────────► decide ...
               event loop                         writer thread    event loop

With `shows_pending_writes` writes are decided and shown as they arrive, also during a commit, and `submit` returns then
(decision 0015). If a commit fails they are changed back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from allot.storage.broadcast import (
    DEFAULT_WINDOW_BYTES,
    DEFAULT_WINDOW_REVISIONS,
    Broadcast,
    HistoryPage,
)
from allot.storage.broadcast_watch import BroadcastWatch
from allot.storage.compaction import keep_compacting
from allot.storage.entries import UNCHANGED, Entries, Past
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
from allot.storage.log_verification import Contents
from allot.storage.sqlite_files import Files, open_files
from allot.storage.sqlite_thread import SqliteThread
from allot.storage.sqlite_writes import MAX_CHANGES_PER_PAGE, SqliteWrites
from allot.task_cancellation import cancel_and_wait

MAX_ROWS_PER_COMPACTION: Final = 500
"""Writes wait while this many rows are compacted, for some milliseconds."""


class SqliteStore(Store):
    """For use in one event loop. Created by `open`."""

    def __init__(
        self,
        files: Files,
        contents: Contents,
        *,
        window_revisions: int,
        window_bytes: int,
        history_seconds: float,
        shows_pending_writes: bool,
        clock: Callable[[], float],
    ) -> None:
        self._files = files
        self._log, self._reader = files.log, files.reader
        self._entries = Entries(contents.entries)
        self._broadcast = Broadcast(
            contents.revision,
            self._read_history,
            max_revisions=window_revisions,
            max_bytes=window_bytes,
            clock=clock,
            marks=contents.marks,
        )
        self._broadcast.oldest = contents.compacted
        if contents.recent:
            self._broadcast.preload(contents.recent, contents.recent[0][0].revision - 1)
        self._history_seconds, self._clock = history_seconds, clock
        self._compacting: asyncio.Task[None] | None = None
        self._compaction_turn = asyncio.Lock()
        self._closing = False
        self._writer_thread = SqliteThread(files.path, "storage-writer")
        self._reader_thread = SqliteThread(files.path, "storage-reader")
        self._writes = SqliteWrites(
            self._log,
            self._writer_thread,
            self._entries,
            self._broadcast,
            clock,
            shows_pending=shows_pending_writes,
        )

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        window_revisions: int = DEFAULT_WINDOW_REVISIONS,
        window_bytes: int = DEFAULT_WINDOW_BYTES,
        history_seconds: float = 300.0,
        compaction_interval_seconds: float = 30.0,
        shows_pending_writes: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open or create the file. Raises `StorageError`.

        At least `history_seconds` of history are kept; older history is compacted periodically, unless the
        interval is 0.
        """
        files, contents = await asyncio.to_thread(open_files, path, window_revisions, window_bytes)
        store = cls(
            files,
            contents,
            window_revisions=window_revisions,
            window_bytes=window_bytes,
            history_seconds=history_seconds,
            shows_pending_writes=shows_pending_writes,
            clock=clock,
        )
        if compaction_interval_seconds:
            store._compacting = asyncio.create_task(
                keep_compacting(store._sync_and_compact, compaction_interval_seconds)
            )
        return store

    @property
    def trouble(self) -> str | None:
        return self._writes.trouble

    @property
    def announced(self) -> int:
        return self._broadcast.revision

    @property
    def known_revision(self) -> int:
        return self._broadcast.revision

    @property
    def durable(self) -> int:
        return self._writes.durable

    @property
    def withdrawals(self) -> int:
        return self._broadcast.withdrawals

    async def until_durable(self, revision: int) -> None:
        await self._writes.until_durable(revision)

    def on_withdrawal(self, listener: Callable[[], None]) -> None:
        self._writes.withdrawal_listeners[listener] = None

    def ignore_withdrawals(self, listener: Callable[[], None]) -> None:
        self._writes.withdrawal_listeners.pop(listener, None)

    async def revision(self) -> int:
        return self._broadcast.revision

    async def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    async def list(
        self, prefix: str, *, revision: int | None = None, after: str = "", limit: int = 0
    ) -> Page:
        past = UNCHANGED
        if revision is not None:
            past = await self._past(prefix, revision)
        # No other task runs between here and the state that `past` starts from.
        shown = self._broadcast.revision if revision is None else revision
        return self._entries.page(prefix, after, limit, shown, past)

    def write(self, *operations: Operation) -> Coroutine[Any, Any, int]:
        return self._writes.write(operations, is_submitted=False)

    def submit(self, *operations: Operation) -> Coroutine[Any, Any, int]:
        return self._writes.write(operations, is_submitted=True)

    def watch(self, prefix: str, after: int) -> Watch:
        return BroadcastWatch(self._broadcast, prefix, after)

    async def compact(self, revision: int) -> None:
        if revision > self._broadcast.revision:
            raise FutureRevisionError(revision, self._broadcast.revision)
        await self.until_durable(revision)
        async with self._compaction_turn:
            while self._broadcast.oldest < revision:
                self._broadcast.oldest = await self._writer_thread.run(
                    self._log.forget, revision, MAX_ROWS_PER_COMPACTION
                )

    async def compact_old(self) -> None:
        """Compact history older than `history_seconds`."""
        start = self._clock() - self._history_seconds
        await self.compact(await self._reader_thread.run(self._reader.last_revision_before, start))

    async def revision_at(self, time: float) -> int:
        return min(self._broadcast.revision_at(time), self.durable)

    async def oldest(self) -> int:
        return self._broadcast.oldest

    async def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        try:
            await cancel_and_wait(self._compacting)
        finally:
            await self._writes.close()
            self._broadcast.close()
            await asyncio.to_thread(self._close_files)

    def _close_files(self) -> None:
        self._reader_thread.shutdown()
        self._writer_thread.shutdown()
        self._files.close()

    async def _read_history(self, prefix: str, after: int, upto: int) -> HistoryPage:
        with suppress(StoreUnavailableError):
            await self.until_durable(upto)
        upto = min(upto, self.durable)
        return await self._reader_thread.run(
            self._reader.history, prefix, after, upto, MAX_CHANGES_PER_PAGE
        )

    async def _past(self, prefix: str, revision: int) -> Past:
        """The entries at `revision` of keys that have changed since. Use it before the next await."""
        broadcast = self._broadcast
        while True:
            upto = self.durable  # the file has no more
            if revision > broadcast.revision:
                raise FutureRevisionError(revision, broadcast.revision)
            if revision < broadcast.oldest:
                raise CompactedError(revision, broadcast.oldest)
            if revision >= broadcast.floor:
                return {change.key: change.previous for change in broadcast.since(revision)}
            past = await self._reader_thread.run(self._reader.past, prefix, revision, upto)
            if upto >= broadcast.floor:
                newer = {change.key: change.previous for change in broadcast.since(upto)}
                return newer | past

    async def _sync_and_compact(self) -> None:
        await self._reader_thread.run(self._files.mark.sync)
        await self.compact_old()
