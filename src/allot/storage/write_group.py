"""Writes that share a commit: each is decided on the result of those before it, and answered by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from allot.storage.interface import (
    Entry,
    Operation,
    RevisionConflictError,
    StorageError,
    StoreUnavailableError,
)
from allot.storage.transactions import Batch, decide_changes


class QueuedWrite(NamedTuple):
    """A write that waits for its commit."""

    operations: tuple[Operation, ...]
    answer: asyncio.Future[int]
    is_submitted: bool
    """Whether it is answered when it is shown, not when it is durable."""


class WriteGroup:
    """The outcomes of some writes, and the changes to commit for them."""

    def __init__(
        self, writes: Sequence[QueuedWrite], last: int, current: Callable[[str], Entry | None]
    ) -> None:
        """`last` is the revision of the `current` entries."""
        self.last = last
        self.batches: list[Batch] = []
        self.writes = writes
        self.has_unsubmitted = False
        """Whether some of the writes are answered when they are durable."""
        self._outcomes: list[int | RevisionConflictError] = []
        staged: dict[str, Entry | None] = {}

        def latest(key: str) -> Entry | None:
            return staged[key] if key in staged else current(key)

        is_one = len(writes) == 1  # mostly
        for write in writes:
            if not write.is_submitted:
                self.has_unsubmitted = True
            revision = last + len(self.batches) + 1
            try:
                batch = decide_changes(write.operations, current if is_one else latest, revision)
            except RevisionConflictError as conflict:
                self._outcomes.append(conflict)
                continue
            if batch:
                self.batches.append(batch)
                if not is_one:
                    staged.update((change.key, change.entry) for change in batch)
            self._outcomes.append(last + len(self.batches))

    def answer_submitted(self) -> None:
        """The changes are shown."""
        for write, outcome in zip(self.writes, self._outcomes, strict=True):
            if write.is_submitted:
                _answer(write, outcome)

    def answer(self) -> None:
        """The changes are durable."""
        for write, outcome in zip(self.writes, self._outcomes, strict=True):
            _answer(write, outcome)


def _answer(write: QueuedWrite, outcome: int | RevisionConflictError) -> None:
    if write.answer.done():
        return  # answered when it was shown, or the caller was cancelled
    if isinstance(outcome, int):
        write.answer.set_result(outcome)
    else:
        write.answer.set_exception(outcome)


def refuse(writes: Iterable[QueuedWrite], error: StorageError) -> None:
    """Answer the writes that have no answer yet with an error."""
    kind = type(error) if isinstance(error, StoreUnavailableError) else StoreUnavailableError
    for write in writes:
        if not write.answer.done():
            write.answer.set_exception(kind(f"the write could not be made durable: {error}"))
