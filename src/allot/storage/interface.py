"""What a store promises, whatever it keeps its bytes in.

A store is a sorted map from keys to bytes with one sequence of revisions. A write of several keys
takes effect as a whole and gets one revision, greater than all before it, durable when the call
returns. Reads are linearizable: they show every write that was answered before they began. Past
revisions can be read and watched from until they are compacted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

MISSING: Final = 0
"""The expected revision of a key that must not exist."""


class Entry(NamedTuple):
    """A key as it was at some revision."""

    key: str
    value: bytes
    revision: int
    """When the key was last written."""
    created: int
    """When the key was written first since it last did not exist."""


class Page(NamedTuple):
    """Entries in the order of their keys, all as of one revision."""

    entries: Sequence[Entry]
    revision: int
    remaining: int
    """How many more entries there are after these."""


class Put(NamedTuple):
    """Write a key that is at the `expected` revision; `MISSING` creates, None does not care."""

    key: str
    value: bytes
    expected: int | None = None


class Delete(NamedTuple):
    """Remove a key that is at the `expected` revision; None does not care, not even whether it is there."""

    key: str
    expected: int | None = None


class Check(NamedTuple):
    """Change nothing, but let the whole write fail unless the key is at the `expected` revision."""

    key: str
    expected: int


Operation = Put | Delete | Check


class Change(NamedTuple):
    """One key of one write. A key that did not exist before, or does not any more, has None there."""

    revision: int
    key: str
    entry: Entry | None
    previous: Entry | None


class StorageError(Exception):
    """The store cannot do what was asked."""


class RevisionConflictError(StorageError):
    """A key is not at the revision the write expected. Nothing was written: read it again and retry."""

    def __init__(self, key: str, expected: int, actual: int) -> None:
        super().__init__(f"{key}: expected revision {expected}, found {actual}")
        self.key, self.expected, self.actual = key, expected, actual


class CompactedError(StorageError):
    """History before `oldest` is gone. List again and go on from there."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} is no longer kept, the oldest is {oldest}")
        self.revision, self.oldest = revision, oldest


class FutureRevisionError(StorageError):
    """There is no such revision yet."""

    def __init__(self, revision: int, current: int) -> None:
        super().__init__(f"revision {revision} is in the future, the current one is {current}")
        self.revision, self.current = revision, current


class SlowWatcherError(StorageError):
    """The watcher fell too far behind and was cut off. List again, or watch from what was seen last."""


class StoreUnavailableError(StorageError):
    """The store did not answer, or refuses writes. Whether a write took effect is not known."""


class StoreFullError(StoreUnavailableError):
    """There is no space for writes. Reads go on, and so do writes when there is space again."""


class DamagedStoreError(StorageError):
    """What is stored contradicts itself, or is older than what was answered. It is refused, not repaired."""


class Watch(ABC):
    """Changes under a prefix, in order. Each item is all of one write that concerns the prefix."""

    def __aiter__(self) -> Self:
        return self

    @abstractmethod
    async def __anext__(self) -> Sequence[Change]:
        """The changes of the next revision; raises `CompactedError` or `SlowWatcherError`.

        When the store is closed the iteration ends.
        """

    @abstractmethod
    def pending(self) -> list[Sequence[Change]]:
        """Everything that can be had without waiting, a sequence per revision; raises as `__anext__` does.

        Once a watch has caught up, that is every change up to what `revision()` returned last.
        """

    @abstractmethod
    async def backlog(self) -> list[Sequence[Change]]:
        """The next changes that have happened already, a sequence per revision; none when all were shown.

        It waits for reads, never for writes. Raises as `__anext__` does, and `StoreUnavailableError` when
        the store is closed before the watch has caught up.
        """

    @abstractmethod
    def close(self) -> None:
        """Ends the iteration, also one that is being waited for."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Store(ABC):
    """A store that is open."""

    @property
    def trouble(self) -> str | None:
        """Why the last write failed, if the store is to blame; None once one has succeeded again.

        It costs nothing to ask. A store that is in trouble keeps trying by itself.
        """
        return None

    @property
    def announced(self) -> int:
        """The newest revision that watches can be read up to without waiting; -1 if it is not known."""
        return -1

    @abstractmethod
    async def revision(self) -> int:
        """The revision of the last write; reads that follow show at least that."""

    @abstractmethod
    async def get(self, key: str) -> Entry | None: ...

    @abstractmethod
    async def list(
        self, prefix: str, *, revision: int | None = None, after: str = "", limit: int = 0
    ) -> Page:
        """Entries whose key starts with `prefix` and comes after `after`, now or at a revision.

        At most `limit` of them, all if it is 0. May raise `CompactedError`, `FutureRevisionError`.
        """

    @abstractmethod
    async def write(self, *operations: Operation) -> int:
        """Do all or nothing; the revision of the write. Raises `RevisionConflictError`.

        Each key occurs once; any text may be one, except the empty one. A write that changes nothing (only checks, or deletes of keys that do
        not exist) gets no revision of its own: the current one comes back.
        """

    @abstractmethod
    def watch(self, prefix: str, after: int) -> Watch:
        """All changes under `prefix` with a revision greater than `after`, past and future.

        Problems, such as that `after` is no longer kept, are raised when the watch is read.
        A store's watches agree with its reads: a watcher that has been waiting since before `revision()`
        returned r receives every change up to r without further writes.
        """

    @abstractmethod
    async def compact(self, revision: int) -> None:
        """Forget states before `revision`; it stays readable, and can be watched from (`after=revision`).

        Compacting again to an older or the same revision does nothing. A revision in the future
        raises `FutureRevisionError`.
        """

    @abstractmethod
    async def oldest(self) -> int:
        """The oldest revision that can be read; 0 if nothing was compacted."""

    @abstractmethod
    async def close(self) -> None:
        """Stop cleanly: writes under way are finished, watches end."""
