"""A store in an SQLite file, for one process at a time.

The current entries are in memory, so that reads never wait for the disk; the file has them and their history
(`revision_log.py`). Writes that arrive during a commit are decided and committed together (group commit). Each still
has its own revision and result.

    write() ─► queue ─► decide against entries ─► append, fsync ─► entries, watchers, answers
    write() ─► queue ──────── waits ────────────────────────────► decide ...
               event loop                         writer thread    event loop
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
from typing import Final, NamedTuple, ParamSpec, Self, TypeVar

from allot.storage.broadcast import (
    DEFAULT_WINDOW_BYTES,
    DEFAULT_WINDOW_REVISIONS,
    Broadcast,
    BroadcastWatch,
    HistoryPage,
)
from allot.storage.entries import UNCHANGED, Entries, Past
from allot.storage.interface import (
    CompactedError,
    Entry,
    FutureRevisionError,
    Operation,
    Page,
    RevisionConflictError,
    StorageError,
    Store,
    StoreUnavailableError,
    Watch,
)
from allot.storage.log_verification import Contents
from allot.storage.revision_log import MAX_CHANGES_PER_WRITE
from allot.storage.sqlite_files import Files, explain, open_files
from allot.storage.transactions import Batch, check_form, decide_changes

MAX_WRITES_PER_COMMIT: Final = 1000
MAX_TURNS: Final = 4
"""Turns of the event loop for which a commit waits for further writes."""
MAX_ROWS_PER_COMPACTION: Final = 500
"""Writes wait while this many rows are compacted, for some milliseconds."""
MAX_CHANGES_PER_PAGE: Final = 1000
RETRY_SECONDS: Final = 1.0
"""How often a store whose writes fail checks whether they succeed again."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class _Waiting(NamedTuple):
    """A queued write."""

    operations: tuple[Operation, ...]
    answer: asyncio.Future[int]


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
        self._queue: deque[_Waiting] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._in_doubt = False
        """Whether the file may have an unknown revision, because a commit failed."""
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
            clock=clock,
        )
        if compaction_interval_seconds:
            store._compacting = asyncio.create_task(
                store._keep_compacting(compaction_interval_seconds)
            )
        return store

    @property
    def trouble(self) -> str | None:
        return self._trouble

    @property
    def announced(self) -> int:
        return self._broadcast.revision

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
        check_form(operations)
        if len(operations) > MAX_CHANGES_PER_WRITE:
            raise StorageError(
                f"{len(operations)} operations in one write, at most {MAX_CHANGES_PER_WRITE} are possible"
            )
        if self._closing:
            raise StoreUnavailableError("the store is closed")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()
        self._queue.append(_Waiting(operations, answer))
        if self._writing is None:
            self._writing = loop.create_task(self._write_queued())
        return await answer

    def watch(self, prefix: str, after: int) -> Watch:
        return BroadcastWatch(self._broadcast, prefix, after)

    async def compact(self, revision: int) -> None:
        if revision > self._broadcast.revision:
            raise FutureRevisionError(revision, self._broadcast.revision)
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
        return self._broadcast.revision_at(time)

    async def oldest(self) -> int:
        return self._broadcast.oldest

    async def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        for task in (self._compacting, self._recovering):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
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
                group = [self._queue.popleft() for _ in range(count)]
                try:
                    await self._write_group(group)
                except StorageError as error:
                    self._note_trouble(error)
                    _refuse(group, error)
                except BaseException:
                    self._in_doubt = True
                    given_up = StoreUnavailableError("writing was abandoned")
                    _refuse([*group, *self._queue], given_up)
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

    async def _write_group(self, group: Sequence[_Waiting]) -> None:
        """Decide, commit, publish and return results. If it fails, nothing is changed."""
        if self._in_doubt:
            await self._resolve_doubt()
        last = self._broadcast.revision
        batches: list[Batch] = []
        outcomes: list[int | RevisionConflictError] = []
        staged: dict[str, Entry | None] = {}

        def current(key: str) -> Entry | None:
            return staged[key] if key in staged else self._entries.get(key)

        for operations, _ in group:
            revision = last + len(batches) + 1
            try:
                batch = decide_changes(operations, current, revision)
            except RevisionConflictError as conflict:
                outcomes.append(conflict)
                continue
            if batch:
                batches.append(batch)
                staged.update((change.key, change.entry) for change in batch)
            outcomes.append(last + len(batches))
        if batches:
            await self._in_thread(
                self._writer_thread, self._log.append, batches, last, self._clock()
            )
            self._show(batches)
            self._note_success()
        for (_, answer), outcome in zip(group, outcomes, strict=True):
            if answer.done():
                continue  # the caller was cancelled
            if isinstance(outcome, int):
                answer.set_result(outcome)
            else:
                answer.set_exception(outcome)

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
        self._in_doubt = False

    def _show(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            self._entries.apply(batch)
        self._broadcast.publish(batches)

    async def _read_history(self, prefix: str, after: int, upto: int) -> HistoryPage:
        return await self._in_thread(
            self._reader_thread, self._reader.history, prefix, after, upto, MAX_CHANGES_PER_PAGE
        )

    async def _past(self, prefix: str, revision: int) -> Past:
        """The entries at `revision` of keys that have changed since. Use it before the next await."""
        broadcast = self._broadcast
        while True:
            upto = broadcast.revision
            if revision > upto:
                raise FutureRevisionError(revision, upto)
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

    async def _keep_compacting(self, interval_seconds: float) -> None:
        while True:
            await asyncio.sleep(interval_seconds)
            try:
                await self._in_thread(self._reader_thread, self._files.mark.sync)
                await self.compact_old()
            except (StorageError, OSError) as error:
                logger.warning("compaction failed, retrying: %s", error)
            except Exception:
                logger.exception("compaction failed, retrying")


def _refuse(writes: Sequence[_Waiting], error: StorageError) -> None:
    kind = type(error) if isinstance(error, StoreUnavailableError) else StoreUnavailableError
    for _, answer in writes:
        if not answer.done():
            answer.set_exception(kind(f"the write could not be made durable: {error}"))
