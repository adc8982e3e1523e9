"""A commit whose writes are shown before it ends (decision 0015), and what remains of them if it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from allot.storage.interface import Change, Entry, Put, RevisionConflictError, StorageError
from allot.storage.transactions import Batch, decide_changes
from allot.storage.write_group import answer, refuse

WITHDRAWN: Final = "withdrawn"
"""The key whose changes take the place of withdrawn revisions."""


class PendingCommit:
    """Writes that are shown and not yet durable."""

    def __init__(self, durable: int) -> None:
        self.durable = durable
        """The last revision before them."""
        self.batches: list[Batch] = []
        self.size = 0
        """The number of writes, also those that change nothing."""
        self.is_due = False
        """Whether a client waits until they are durable."""
        self._answers: list[tuple[asyncio.Future[int], int | RevisionConflictError]] = []
        """Of the writes that are answered when the commit ends."""
        self._ended = asyncio.Event()
        self._error: StorageError | None = None

    def answer_at_end(
        self, future: asyncio.Future[int], outcome: int | RevisionConflictError
    ) -> None:
        """A client waits for the outcome of a write until it is durable."""
        self._answers.append((future, outcome))
        self.is_due = True

    def end(self, error: StorageError | None = None) -> None:
        """The writes are durable, or withdrawn because of an error."""
        self._error = error
        self._ended.set()
        if error is None:
            for future, outcome in self._answers:
                answer(future, outcome)
        else:
            refuse([future for future, _ in self._answers], error)

    async def wait(self) -> None:
        """Returns when the writes are durable; raises if they were withdrawn."""
        await self._ended.wait()
        if self._error is not None:
            raise self._error

    def undone(self) -> Iterator[Change]:
        """The changes that restore what was before, in order."""
        for batch in reversed(self.batches):
            for change in reversed(batch):
                yield Change(change.revision, change.key, change.previous, change.entry)


def placeholders(
    revisions: Iterable[int], current: Callable[[str], Entry | None]
) -> Iterator[Batch]:
    """Changes for withdrawn revisions, which must not stand for anything else: versions of objects were made of them."""
    entry = current(WITHDRAWN)
    for revision in revisions:
        previous = entry
        batch = decide_changes([Put(WITHDRAWN, b"")], lambda _: previous, revision)  # noqa: B023 - called at once
        yield batch
        entry = batch[0].entry


def is_placeholder(entry: Entry | None, revision: int) -> bool:
    """Whether a revision is a placeholder, by the entry of `WITHDRAWN`."""
    return entry is not None and entry.revision == revision
