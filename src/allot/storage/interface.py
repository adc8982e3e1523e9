"""The interface and guarantees of stores.

A store is a sorted map from keys to bytes with one sequence of revisions. A write of several keys
takes effect as a whole and gets one revision, greater than all before it, durable when the call
returns. Reads are linearizable: they show every write that was acknowledged before they began. Past
revisions can be read and watched from until they are compacted.

A store may show writes while they are being committed (decision 0015). What it shows beyond `durable` can still be
withdrawn, and must not leave the process before `until_durable`.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

from msgspec import Struct

MISSING: Final = 0
"""The expected revision of a key that must not exist."""


class Entry(Struct, frozen=True, gc=False):
    """A key as it was at some revision."""

    key: str
    value: bytes
    revision: int
    """When the key was last written."""
    created: int
    """When the key was created."""


class Page(NamedTuple):
    """Entries in the order of their keys, all as of one revision."""

    entries: Sequence[Entry]
    revision: int
    remaining: int
    """The number of entries after these."""


class Put(Struct, frozen=True, gc=False):
    """Write a key that is at the `expected` revision; `MISSING` creates it, None is unconditional."""

    key: str
    value: bytes
    expected: int | None = None


class Delete(Struct, frozen=True, gc=False):
    """Delete a key that is at the `expected` revision; None is unconditional, even if it does not exist."""

    key: str
    expected: int | None = None


class Check(Struct, frozen=True, gc=False):
    """A precondition: the whole write fails unless the key is at the `expected` revision."""

    key: str
    expected: int


Operation = Put | Delete | Check


class Change(Struct, frozen=True, gc=False):
    """The change of one key by one write. None if the key did not exist before, or was deleted."""

    revision: int
    key: str
    entry: Entry | None
    previous: Entry | None


class StorageError(Exception):
    """An operation of the store failed."""


class RevisionConflictError(StorageError):
    """A key is not at the revision the write expected. Nothing was written: read it again and retry."""

    def __init__(self, key: str, expected: int, actual: int) -> None:
        super().__init__(f"{key}: expected revision {expected}, found {actual}")
        self.key, self.expected, self.actual = key, expected, actual


class CompactedError(StorageError):
    """History before `oldest` is compacted. List again and continue from there."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} is no longer kept, the oldest is {oldest}")
        self.revision, self.oldest = revision, oldest


class FutureRevisionError(StorageError):
    """The revision does not exist yet."""

    def __init__(self, revision: int, current: int) -> None:
        super().__init__(f"revision {revision} is in the future, the current one is {current}")
        self.revision, self.current = revision, current


class UnknownTimeError(StorageError):
    """The last revision at a time is not known. `since` is the earliest time of which it is."""

    def __init__(self, time: float, since: float) -> None:
        super().__init__(f"no revision is kept of time {time:.0f}; the earliest is {since:.0f}")
        self.time, self.since = time, since


class SlowWatcherError(StorageError):
    """The watcher fell too far behind and was cut off. List again, or watch from the last received revision."""


class StoreUnavailableError(StorageError):
    """The store does not respond, or rejects writes. The outcome of a write is unknown."""


class StoreFullError(StoreUnavailableError):
    """No space left for writes. Reads continue; writes succeed again when there is space."""


class DamagedStoreError(StorageError):
    """The stored data is inconsistent, or lacks acknowledged writes. The store is not opened, and not repaired."""


class Watch(ABC):
    """Changes under a prefix, in order. Each item has all changes of one write under the prefix."""

    listener: Callable[[Sequence[Sequence[Change]] | None], None] | None = None
    """Given changes, a sequence per revision, before the write that makes them returns; None when it is cut off.

    That begins when everything before was delivered. The iteration then has only errors and the end. To be set before
    the first read. A listener reads nothing else of the store: other listeners may not have the changes yet.
    """
    is_listening = False
    """Whether the listener is given every change from now on."""

    def __aiter__(self) -> Self:
        return self

    @abstractmethod
    async def __anext__(self) -> Sequence[Change]:
        """The changes of the next revision; raises `CompactedError` or `SlowWatcherError`.

        When the store is closed the iteration ends.
        """

    @abstractmethod
    def pending(self) -> list[Sequence[Change]]:
        """All changes that are available without waiting, a sequence per revision; raises as `__anext__` does.

        Once a watch has caught up, these are all changes up to the last result of `revision()`.
        """

    @abstractmethod
    async def backlog(self) -> list[Sequence[Change]]:
        """The next past changes, a sequence per revision; empty when all were delivered.

        It waits for reads, never for writes. Raises as `__anext__` does, and `StoreUnavailableError` when
        the store is closed before the watch has caught up.
        """

    @abstractmethod
    def close(self) -> None:
        """Ends the iteration, including a pending `__anext__`."""

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
    """An open store."""

    @property
    def trouble(self) -> str | None:
        """Why the last write failed, if the store is the cause; None after a write has succeeded.

        Cheap to call. A store whose writes fail retries by itself.
        """
        return None

    @property
    def announced(self) -> int:
        """The newest revision that watches can be read up to without waiting; -1 if it is not known."""
        return -1

    @property
    def known_revision(self) -> int:
        """What `revision` returns, if that is known without waiting; -1 if it is not."""
        return -1

    @property
    def durable(self) -> int:
        """All writes up to this revision are durable. By default what is not durable is not shown."""
        return sys.maxsize

    @property
    def withdrawals(self) -> int:
        """How often shown writes were withdrawn because their commit failed. Their revisions are not used again."""
        return 0

    async def until_durable(self, revision: int) -> None:  # noqa: B027 - by default nothing is withdrawn
        """Returns when all writes up to a shown revision are durable; `StoreUnavailableError` if they were withdrawn."""

    def on_withdrawal(self, listener: Callable[[], None]) -> None:  # noqa: B027 - by default nothing is withdrawn
        """Call `listener` as soon as shown writes are withdrawn, before anything else is written."""

    def ignore_withdrawals(self, listener: Callable[[], None]) -> None:  # noqa: B027 - by default nothing is withdrawn
        """Do not call `listener` any more."""

    @abstractmethod
    async def revision(self) -> int:
        """The revision of the last write; later reads show at least this revision."""

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
        """Perform all operations or none; the revision of the write. Raises `RevisionConflictError`.

        Each key occurs once; any string except the empty one is valid. A write that changes nothing (only checks, or
        deletes of missing keys) gets no new revision: the current one is returned.
        """

    async def submit(self, *operations: Operation) -> int:
        """As `write`, but it may return when the write is shown, before it is durable."""
        return await self.write(*operations)

    @abstractmethod
    def watch(self, prefix: str, after: int) -> Watch:
        """All changes under `prefix` with a revision greater than `after`, past and future.

        Errors, such as a compacted `after`, are raised when the watch is read.
        A store's watches agree with its reads: a watcher that has been waiting since before `revision()`
        returned r receives every change up to r without further writes.
        """

    @abstractmethod
    async def compact(self, revision: int) -> None:
        """Drop history before `revision`, which stays readable and can be watched from (`after=revision`).

        Compacting again to an older or the same revision does nothing. A revision in the future
        raises `FutureRevisionError`.
        """

    @abstractmethod
    async def revision_at(self, time: float) -> int:
        """The last revision at a time in seconds since the epoch, or one of less than a second later.

        It can be listed. Raises `UnknownTimeError` if the time is before what is kept.
        """

    @abstractmethod
    async def oldest(self) -> int:
        """The oldest revision that can be read; 0 if nothing was compacted."""

    @abstractmethod
    async def close(self) -> None:
        """Close cleanly: pending writes finish, watches end."""
