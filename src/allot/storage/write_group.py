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
    """A write that waits for its turn."""

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
        self._writes = writes
        self._outcomes: list[int | RevisionConflictError] = []
        staged: dict[str, Entry | None] = {}

        def latest(key: str) -> Entry | None:
            return staged[key] if key in staged else current(key)

        for write in writes:
            revision = last + len(self.batches) + 1
            try:
                batch = decide_changes(write.operations, latest, revision)
            except RevisionConflictError as conflict:
                self._outcomes.append(conflict)
                continue
            if batch:
                self.batches.append(batch)
                staged.update((change.key, change.entry) for change in batch)
            self._outcomes.append(last + len(self.batches))

    def answer(self) -> None:
        """The changes are durable."""
        for write, outcome in zip(self._writes, self._outcomes, strict=True):
            answer(write.answer, outcome)


def answer(future: asyncio.Future[int], outcome: int | StorageError) -> None:
    """Answer a write, unless its caller was cancelled."""
    if future.done():
        return
    if isinstance(outcome, int):
        future.set_result(outcome)
    else:
        future.set_exception(outcome)


def refuse(answers: Iterable[asyncio.Future[int]], error: StorageError) -> None:
    """Answer writes that have no answer yet with an error."""
    kind = type(error) if isinstance(error, StoreUnavailableError) else StoreUnavailableError
    for each in answers:
        answer(each, kind(f"the write could not be made durable: {error}"))
