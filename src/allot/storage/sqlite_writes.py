"""The writes of an SQLite store: decided, shown, committed and answered, or withdrawn.

A commit that fails leaves the store in doubt until the file has been read again. Meanwhile, and until a write succeeds,
writes are shown when they are durable, and the store tries by itself whether they succeed again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from allot.storage.broadcast import Broadcast
from allot.storage.entries import Entries
from allot.storage.interface import (
    Operation,
    RevisionConflictError,
    StorageError,
    StoreUnavailableError,
)
from allot.storage.pending_commit import (
    WITHDRAWN,
    PendingCommit,
    is_placeholder,
    placeholders,
)
from allot.storage.revision_log import MAX_CHANGES_PER_WRITE, RevisionLog
from allot.storage.sqlite_thread import SqliteThread
from allot.storage.transactions import Batch, check_form, decide_changes
from allot.storage.write_group import QueuedWrite, WriteGroup, answer, refuse
from allot.task_cancellation import cancel_and_wait

MAX_WRITES_PER_COMMIT: Final = 1000
MAX_TURNS: Final = 4
"""Turns of the event loop for which a commit waits for further writes."""
MAX_DELAY_SECONDS: Final = 0.010
"""How long submitted writes are kept for further ones to share their commit, if no client waits for them."""
MAX_CHANGES_PER_PAGE: Final = 1000
ABANDONED: Final = "writing was abandoned"
RETRY_SECONDS: Final = 1.0
"""How often a store whose writes fail checks whether they succeed again."""

logger = logging.getLogger(__name__)


class SqliteWrites:
    """The queue of writes, and what is shown before it is durable. For use in one event loop."""

    def __init__(
        self,
        log: RevisionLog,
        thread: SqliteThread,
        entries: Entries,
        broadcast: Broadcast,
        clock: Callable[[], float],
        *,
        shows_pending: bool,
    ) -> None:
        self.trouble: str | None = None
        """Why writes fail."""
        self._log, self._thread = log, thread
        self._entries, self._broadcast = entries, broadcast
        self._clock = clock
        self._queue: deque[QueuedWrite] = deque()
        self._arrived = 0
        self._writing: asyncio.Task[None] | None = None
        self._in_doubt = False
        """Whether the file may have an unknown revision, because a commit failed."""
        self._shows_pending = shows_pending
        self._is_deciding = False
        """Whether writes are being committed that are shown afterwards: no others can be decided meanwhile."""
        self._committing: PendingCommit | None = None
        self._shown: PendingCommit | None = None
        """What is shown already and belongs to the next commit."""
        self._withdrawn: list[range] = []
        """Revisions that were shown and are not stored."""
        self.withdrawal_listeners: dict[Callable[[], None], None] = {}
        self._recovering: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def durable(self) -> int:
        pending = self._committing or self._shown
        return self._broadcast.revision if pending is None else pending.durable

    async def until_durable(self, revision: int) -> None:
        for pending in (self._shown, self._committing):
            if pending is not None and revision > pending.durable:
                self._make_due(pending)
                await pending.wait()
                return
        if any(revision in each for each in self._withdrawn):
            raise StoreUnavailableError(f"revision {revision} could not be made durable")

    async def write(self, operations: tuple[Operation, ...], *, is_submitted: bool) -> int:
        """The revision: when it is shown if it is submitted, otherwise when it is durable."""
        check_form(operations)
        if len(operations) > MAX_CHANGES_PER_WRITE:
            raise StorageError(
                f"{len(operations)} operations in one write, at most {MAX_CHANGES_PER_WRITE} are possible"
            )
        if self._closing:
            raise StoreUnavailableError("the store is closed")
        self._arrived += 1
        commit = self._next_commit() if self._can_show and not self._queue else None
        if commit is not None and commit.size >= MAX_WRITES_PER_COMMIT:
            commit = None
        if commit is not None and is_submitted:
            return self._show_write(commit, operations)
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if commit is not None:
            commit.answer_at_end(future, self._outcome_of(commit, operations))
        else:
            self._queue.append(QueuedWrite(operations, future, is_submitted))
            if self._can_show:
                self._show_queued()
        self._start()
        return await future

    async def close(self) -> None:
        """Returns when all writes are answered. There are no others from now on."""
        self._closing = True
        try:
            await cancel_and_wait(self._recovering)
        finally:
            if self._shown is not None:
                self._make_due(self._shown)
            while self._writing is not None:
                await self._writing

    # --- committing ---

    @property
    def _has_work(self) -> bool:
        return bool(self._queue) or (self._shown is not None and self._shown.is_due)

    def _start(self) -> None:
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write_queued())

    async def _write_queued(self) -> None:
        try:
            while self._has_work:
                await self._gather()
                try:
                    if self._can_show:
                        await self._commit_shown()
                    else:
                        await self._write_group()
                except StorageError as error:
                    self._note_trouble(error)
                except BaseException:
                    self._in_doubt = True
                    self._refuse_queued(StoreUnavailableError(ABANDONED))
                    raise
        finally:
            self._writing = None

    async def _gather(self) -> None:
        """Wait as long as every turn of the event loop brings further writes, which then share a commit.

        Watchers of what is shown already go first: the thread that writes would hold the interpreter lock.
        """
        for _ in range(MAX_TURNS):
            arrived = self._arrived
            await asyncio.sleep(0)
            if self._arrived == arrived:
                return

    async def _write_group(self) -> None:
        """Decide, commit, show and answer. If it fails, nothing is changed."""
        queue = self._queue
        writes = [queue.popleft() for _ in range(min(len(queue), MAX_WRITES_PER_COMMIT))]
        self._is_deciding = True
        try:
            if self._in_doubt:
                await self._resolve_doubt()
            group = WriteGroup(writes, self._broadcast.revision, self._entries.get)
            if group.batches:
                await self._append(group.batches, group.last)
                self._show(group.batches)
                self._note_success()
            group.answer()
        except BaseException as error:
            refuse([write.answer for write in writes], _known(error))
            raise
        finally:
            self._is_deciding = False

    # --- showing what is pending ---

    @property
    def _can_show(self) -> bool:
        """Whether writes are shown before they are durable: not while they fail."""
        return (
            self._shows_pending
            and self.trouble is None
            and not self._in_doubt
            and not self._is_deciding
        )

    def _next_commit(self) -> PendingCommit:
        """What is committed next, with everything that is shown meanwhile."""
        if self._shown is None:
            self._shown = PendingCommit(self._broadcast.revision)
            loop = asyncio.get_running_loop()
            loop.call_later(MAX_DELAY_SECONDS, self._make_due, self._shown)
        return self._shown

    def _show_write(self, commit: PendingCommit, operations: tuple[Operation, ...]) -> int:
        """Decide a write and show it: its revision. Raises `RevisionConflictError`."""
        commit.size += 1
        batch = decide_changes(operations, self._entries.get, self._broadcast.revision + 1)
        if batch:
            commit.batches.append(batch)
            self._entries.apply(batch)
            self._broadcast.publish((batch,))
        return self._broadcast.revision

    def _outcome_of(
        self, commit: PendingCommit, operations: tuple[Operation, ...]
    ) -> int | RevisionConflictError:
        try:
            return self._show_write(commit, operations)
        except RevisionConflictError as conflict:
            return conflict

    def _show_queued(self) -> None:
        """Decide and show the queued writes, for the next commit."""
        commit = self._next_commit()
        while self._queue and commit.size < MAX_WRITES_PER_COMMIT:
            write = self._queue.popleft()
            outcome = self._outcome_of(commit, write.operations)
            if write.is_submitted:
                answer(write.answer, outcome)
            else:
                commit.answer_at_end(write.answer, outcome)

    def _make_due(self, pending: PendingCommit) -> None:
        """A client waits for it, or it has waited long enough."""
        pending.is_due = True
        if pending is self._shown:
            self._start()

    async def _commit_shown(self) -> None:
        """Make what is shown durable, and answer. If it fails, everything that is shown is withdrawn."""
        if self._queue:
            self._show_queued()
        commit = self._committing = self._shown
        self._shown = None
        assert commit is not None
        try:
            if commit.batches:
                await self._append(commit.batches, commit.durable)
        except BaseException as error:
            self._withdraw(commit, _known(error))
            raise
        self._committing = None
        commit.end()

    async def _append(self, batches: Sequence[Batch], last: int) -> None:
        await self._thread.run(self._log.append, batches, last, self._clock())

    def _withdraw(self, commit: PendingCommit, error: StorageError) -> None:
        """Change everything back, and refuse what was written meanwhile: it may follow from what was shown."""
        shown = [commit] if self._shown is None else [self._shown, commit]
        self._committing = self._shown = None
        self._withdrawn.append(range(commit.durable + 1, self._broadcast.revision + 1))
        for each in shown:
            self._entries.apply(each.undone())
        self._broadcast.withdraw(commit.durable)
        for each in shown:
            each.end(error)
        self._refuse_queued(error)
        for listener in tuple(self.withdrawal_listeners):
            listener()

    def _refuse_queued(self, error: StorageError) -> None:
        refuse([write.answer for write in self._queue], error)
        self._queue.clear()

    # --- trouble ---

    def _note_trouble(self, error: StorageError) -> None:
        self._in_doubt = True
        if self.trouble is None:  # log once, not for each write
            logger.error("writes fail: %s", error)
        self.trouble = str(error)
        if self._recovering is None and not self._closing:
            self._recovering = asyncio.create_task(self._try_to_recover())

    def _note_success(self) -> None:
        if self.trouble is not None:
            logger.warning("writes succeed again")
            self.trouble = None

    async def _try_to_recover(self) -> None:
        """Probe writes: servers that are not ready receive none, so recovery needs its own."""
        try:
            while self.trouble is not None:
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
            await self._thread.run(self._log.write_nothing)
            self._note_success()
        except StorageError as error:
            self.trouble = str(error)
        finally:
            self._writing = None
            if self._has_work:
                self._start()

    async def _resolve_doubt(self) -> None:
        """After a failed commit: check whether it took effect, and continue from the file."""
        run, log = self._thread.run, self._log
        await run(log.reconnect)
        upto = await run(log.revision)
        while (known := self._broadcast.revision) < upto:
            page = await run(log.history, "", known, upto, MAX_CHANGES_PER_PAGE)
            self._show(page.batches)
        await self._replace_withdrawn(known)
        self._in_doubt = False

    async def _replace_withdrawn(self, last: int) -> None:
        """Store something else at the withdrawn revisions, except those that the file has after all."""
        if not self._withdrawn or is_placeholder(self._entries.get(WITHDRAWN), last):
            return
        withdrawn = self._withdrawn.pop()
        if last in withdrawn:
            withdrawn = range(last + 1, withdrawn.stop)
        if withdrawn:
            self._withdrawn.append(withdrawn)
        if withdrawn and last + 1 == withdrawn.start:
            missing = [*placeholders(withdrawn, self._entries.get)]
            await self._append(missing, last)
            self._show(missing)

    def _show(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            self._entries.apply(batch)
        self._broadcast.publish(batches)


def _known(error: BaseException) -> StorageError:
    return error if isinstance(error, StorageError) else StoreUnavailableError(ABANDONED)
