"""A store in an SQLite file, for one process at a time.

The current entries are in memory, so that reads never wait for the disk; the file has them and their history
(`revision_log.py`). Writes that arrive during a commit are decided and committed together (group commit). Each still
has its own revision and result.

    write() ─► queue ─► decide against entries ─► append, fsync ─► entries, watchers, answers
    write() ─► queue ──────── waits ────────────────────────────► decide ...
               event loop                         writer thread    event loop

With `shows_pending_writes` entries and watchers change when a commit begins, not when it ends, and `submit` returns then
(decision 0015). If it fails they are changed back.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, ParamSpec, Self, TypeVar

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
    StorageError,
    Store,
    StoreUnavailableError,
    Watch,
)
from allot.storage.log_verification import Contents
from allot.storage.pending_commit import (
    WITHDRAWN,
    PendingCommit,
    is_placeholder,
    placeholders,
)
from allot.storage.revision_log import MAX_CHANGES_PER_WRITE
from allot.storage.sqlite_files import Files, explain, open_files
from allot.storage.transactions import Batch, check_form
from allot.storage.write_group import QueuedWrite, WriteGroup, refuse
from allot.task_cancellation import cancel_and_wait

MAX_WRITES_PER_COMMIT: Final = 1000
MAX_TURNS: Final = 4
"""Turns of the event loop for which a commit waits for further writes."""
MAX_ROWS_PER_COMPACTION: Final = 500
"""Writes wait while this many rows are compacted, for some milliseconds."""
MAX_CHANGES_PER_PAGE: Final = 1000
ABANDONED: Final = "writing was abandoned"
RETRY_SECONDS: Final = 1.0
"""How often a store whose writes fail checks whether they succeed again."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

logger = logging.getLogger(__name__)


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
        self._queue: deque[QueuedWrite] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._in_doubt = False
        """Whether the file may have an unknown revision, because a commit failed."""
        self._shows_pending_writes = shows_pending_writes
        self._pending: PendingCommit | None = None
        self._withdrawn: list[range] = []
        """Revisions that were shown and are not stored."""
        self._withdrawal_listeners: dict[Callable[[], None], None] = {}
        self._trouble: str | None = None
        self._recovering: asyncio.Task[None] | None = None
        self._closing = False
        self._compacting: asyncio.Task[None] | None = None
        self._compaction_turn = asyncio.Lock()
        self._writer_thread = ThreadPoolExecutor(1, "storage-writer")
        self._reader_thread = ThreadPoolExecutor(1, "storage-reader")

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
        return self._trouble

    @property
    def announced(self) -> int:
        return self._broadcast.revision

    @property
    def durable(self) -> int:
        return self._broadcast.revision if self._pending is None else self._pending.durable

    @property
    def withdrawals(self) -> int:
        return self._broadcast.withdrawals

    async def until_durable(self, revision: int) -> None:
        if self._pending is not None and revision > self._pending.durable:
            await self._pending.wait()
        elif any(revision in each for each in self._withdrawn):
            raise StoreUnavailableError(f"revision {revision} could not be made durable")

    def on_withdrawal(self, listener: Callable[[], None]) -> None:
        self._withdrawal_listeners[listener] = None

    def ignore_withdrawals(self, listener: Callable[[], None]) -> None:
        self._withdrawal_listeners.pop(listener, None)

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

    async def write(self, *operations: Operation) -> int:
        return await self._enqueue(operations, is_submitted=False)

    async def submit(self, *operations: Operation) -> int:
        return await self._enqueue(operations, is_submitted=True)

    def _enqueue(
        self, operations: tuple[Operation, ...], *, is_submitted: bool
    ) -> asyncio.Future[int]:
        check_form(operations)
        if len(operations) > MAX_CHANGES_PER_WRITE:
            raise StorageError(
                f"{len(operations)} operations in one write, at most {MAX_CHANGES_PER_WRITE} are possible"
            )
        if self._closing:
            raise StoreUnavailableError("the store is closed")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()
        self._queue.append(QueuedWrite(operations, answer, is_submitted))
        if self._writing is None:
            self._writing = loop.create_task(self._write_queued())
        return answer

    def watch(self, prefix: str, after: int) -> Watch:
        return BroadcastWatch(self._broadcast, prefix, after)

    async def compact(self, revision: int) -> None:
        if revision > self._broadcast.revision:
            raise FutureRevisionError(revision, self._broadcast.revision)
        await self.until_durable(revision)
        async with self._compaction_turn:
            while self._broadcast.oldest < revision:
                self._broadcast.oldest = await self._in_thread(
                    self._writer_thread, self._log.forget, revision, MAX_ROWS_PER_COMPACTION
                )

    async def compact_old(self) -> None:
        """Compact history older than `history_seconds`."""
        start = self._clock() - self._history_seconds
        await self.compact(
            await self._in_thread(self._reader_thread, self._reader.last_revision_before, start)
        )

    async def revision_at(self, time: float) -> int:
        return min(self._broadcast.revision_at(time), self.durable)

    async def oldest(self) -> int:
        return self._broadcast.oldest

    async def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        try:
            await cancel_and_wait(self._compacting, self._recovering)
        finally:
            while self._writing is not None:
                await self._writing
            self._broadcast.close()
            await asyncio.to_thread(self._close_files)

    def _close_files(self) -> None:
        self._reader_thread.shutdown()
        self._writer_thread.shutdown()
        self._files.close()

    async def _write_queued(self) -> None:
        try:
            while self._queue:
                await self._gather()
                count = min(len(self._queue), MAX_WRITES_PER_COMMIT)
                writes = [self._queue.popleft() for _ in range(count)]
                try:
                    await self._write_group(writes)
                except StorageError as error:
                    self._note_trouble(error)
                    refuse(writes, error)
                except BaseException:
                    self._in_doubt = True
                    given_up = StoreUnavailableError(ABANDONED)
                    refuse([*writes, *self._queue], given_up)
                    self._queue.clear()
                    raise
        finally:
            self._writing = None

    async def _gather(self) -> None:
        """Wait as long as every turn of the event loop brings further writes, which then share a commit."""
        for _ in range(MAX_TURNS):
            count = len(self._queue)
            await asyncio.sleep(0)
            if len(self._queue) == count:
                return

    async def _write_group(self, writes: Sequence[QueuedWrite]) -> None:
        """Decide, commit, show and answer. If it fails, nothing is changed."""
        if self._in_doubt:
            await self._resolve_doubt()
        group = WriteGroup(writes, self._broadcast.revision, self._entries.get)
        if group.batches:
            if self._shows_pending_writes and self._trouble is None:
                self._pending = PendingCommit(group.last, group.batches)
                self._show(group.batches)
                group.answer_submitted()
            await self._commit(group)
            self._note_success()
        group.answer()

    async def _commit(self, group: WriteGroup) -> None:
        """Make the changes durable, and show them if they are not shown yet."""
        batches, last = group.batches, group.last
        try:
            await self._in_thread(
                self._writer_thread, self._log.append, batches, last, self._clock()
            )
        except BaseException as error:
            if self._pending is not None:
                self._withdraw(self._pending, error)
            raise
        if self._pending is None:
            self._show(batches)
        else:
            self._pending.end()
            self._pending = None

    def _withdraw(self, pending: PendingCommit, error: BaseException) -> None:
        """Change everything back, and refuse what was written meanwhile: it may follow from what was shown."""
        known = error if isinstance(error, StorageError) else StoreUnavailableError(ABANDONED)
        self._pending = None
        self._withdrawn.append(range(pending.durable + 1, self._broadcast.revision + 1))
        self._entries.apply(pending.undone())
        self._broadcast.withdraw(pending.durable)
        pending.end(known)
        refuse(self._queue, known)
        self._queue.clear()
        for listener in tuple(self._withdrawal_listeners):
            listener()

    def _note_trouble(self, error: StorageError) -> None:
        self._in_doubt = True
        if self._trouble is None:  # log once, not for each write
            logger.error("writes fail: %s", error)
        self._trouble = str(error)
        if self._recovering is None and not self._closing:
            self._recovering = asyncio.create_task(self._try_to_recover())

    def _note_success(self) -> None:
        if self._trouble is not None:
            logger.warning("writes succeed again")
            self._trouble = None

    async def _try_to_recover(self) -> None:
        """Probe writes: servers that are not ready receive none, so recovery needs its own."""
        try:
            while self._trouble is not None:
                await asyncio.sleep(RETRY_SECONDS)
                if self._writing is None:
                    self._writing = asyncio.create_task(self._write_nothing())
                    await asyncio.shield(self._writing)
        finally:
            self._recovering = None

    async def _write_nothing(self) -> None:
        try:
            if self._in_doubt:
                await self._resolve_doubt()
            await self._in_thread(self._writer_thread, self._log.write_nothing)
            self._note_success()
        except StorageError as error:
            self._trouble = str(error)
        finally:
            self._writing = None
            if self._queue:
                self._writing = asyncio.create_task(self._write_queued())

    async def _resolve_doubt(self) -> None:
        """After a failed commit: check whether it took effect, and continue from the file."""
        thread, log = self._writer_thread, self._log
        await self._in_thread(thread, log.reconnect)
        upto = await self._in_thread(thread, log.revision)
        while (known := self._broadcast.revision) < upto:
            page = await self._in_thread(thread, log.history, "", known, upto, MAX_CHANGES_PER_PAGE)
            self._show(page.batches)
        await self._replace_withdrawn(known)
        self._in_doubt = False

    async def _replace_withdrawn(self, last: int) -> None:
        """Store something else at the withdrawn revisions, unless the file has them after all."""
        if not self._withdrawn:
            return
        withdrawn = self._withdrawn[-1]
        if last in withdrawn and not is_placeholder(self._entries.get(WITHDRAWN), last):
            self._withdrawn.pop()
        elif last + 1 == withdrawn.start:
            missing = [*placeholders(withdrawn, self._entries.get)]
            await self._in_thread(
                self._writer_thread, self._log.append, missing, last, self._clock()
            )
            self._show(missing)

    def _show(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            self._entries.apply(batch)
        self._broadcast.publish(batches)

    async def _read_history(self, prefix: str, after: int, upto: int) -> HistoryPage:
        with suppress(StoreUnavailableError):
            await self.until_durable(upto)
        upto = min(upto, self.durable)
        return await self._in_thread(
            self._reader_thread, self._reader.history, prefix, after, upto, MAX_CHANGES_PER_PAGE
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
            past = await self._in_thread(
                self._reader_thread, self._reader.past, prefix, revision, upto
            )
            if upto >= broadcast.floor:
                newer = {change.key: change.previous for change in broadcast.since(upto)}
                return newer | past

    async def _in_thread(
        self,
        thread: ThreadPoolExecutor,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        try:
            work = thread.submit(function, *arguments, **options)
        except RuntimeError:
            raise StoreUnavailableError("the store is closed") from None
        try:
            return await asyncio.wrap_future(work)
        except sqlite3.Error as error:
            raise explain(self._files.path, error) from error

    async def _sync_and_compact(self) -> None:
        await self._in_thread(self._reader_thread, self._files.mark.sync)
        await self.compact_old()
