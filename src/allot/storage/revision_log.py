"""The revision log in an SQLite file: every change of every revision that is kept, and nothing else.

A row is what one key became by one write. Its place is the revision and the position in the write, so the
log only grows at its end, and its order is the order of the changes. It names the revision of the key's
row before. That is how watchers get previous values, and how compaction finds what was superseded without
an index: going over the revisions to forget, it removes the row before each row, and each deletion.

This module is plain blocking code; `sqlite.py` decides which thread runs it.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from allot.storage.broadcast import HistoryPage
from allot.storage.interface import (
    Change,
    CompactedError,
    Entry,
    StorageError,
    StoreFullError,
    StoreUnavailableError,
)
from allot.storage.transactions import Batch, end_of_prefix

APPLICATION_ID: Final = 0x616C6F74  # "alot"

MIGRATIONS: Final = (
    (
        """CREATE TABLE log (
            place INTEGER PRIMARY KEY,  -- revision << 16 | position in the write
            key TEXT NOT NULL,
            created INTEGER NOT NULL,   -- 0 if the key was deleted
            previous INTEGER NOT NULL,  -- revision of the key's row before; 0 if it did not exist
            value BLOB                  -- NULL if the key was deleted
        )""",
        # At `time` the last revision was `revision`.
        "CREATE TABLE times (revision INTEGER PRIMARY KEY, time REAL NOT NULL)",
        "CREATE TABLE progress (compacted INTEGER NOT NULL)",
        "INSERT INTO progress VALUES (0)",
    ),
)
"""The statements that lead from each schema version, beginning with none at all, to the next."""

PRAGMAS: Final = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "wal_autocheckpoint=4000",
    "journal_size_limit=67108864",
    "cache_size=-16000",
    "secure_delete=OFF",
    "automatic_index=OFF",  # it would index all of the log to find one row
)

POSITION_BITS: Final = 16
MAX_CHANGES_PER_WRITE: Final = 1 << POSITION_BITS

_PREVIOUS_ROW: Final = (
    f"BETWEEN l.previous << {POSITION_BITS} AND (l.previous + 1 << {POSITION_BITS}) - 1"
)
_HISTORY: Final = f"""
    SELECT l.place, l.key, l.created, l.value, l.previous, p.created, p.value
    FROM log l LEFT JOIN log p ON l.previous > 0 AND p.place {_PREVIOUS_ROW} AND p.key = l.key
    WHERE l.place >= ? AND l.place < ? AND l.key >= ? AND (l.key < ? OR ? IS NULL)
    ORDER BY l.place
"""  # noqa: S608
_PAST: Final = f"""
    SELECT l.key, l.previous, p.created, p.value
    FROM (
        SELECT key, previous, min(place) FROM log
        WHERE place >= ? AND place < ? AND key >= ? AND (key < ? OR ? IS NULL)
        GROUP BY key
    ) l LEFT JOIN log p ON l.previous > 0 AND p.place {_PREVIOUS_ROW} AND p.key = l.key
"""  # noqa: S608


class Contents(NamedTuple):
    """What a log holds when it is opened."""

    entries: Iterable[Entry]
    revision: int
    compacted: int


class RevisionLog:
    """One connection to the file. For use by one thread at a time."""

    def __init__(self, path: Path, *, seconds_between_times: float = 5.0) -> None:
        """Open the file, make it if it is not there, and bring it to our schema. May raise `StorageError`."""
        self._path = path
        self._seconds_between_times = seconds_between_times
        self._last_time = -math.inf
        if not path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            _sync_directory(path.parent)
        with self._told_plainly():
            self._connection = self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=10, isolation_level=None, check_same_thread=False
        )
        try:
            _bring_to_our_schema(connection, self._path)
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _told_plainly(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StorageError(f"{self._path} cannot be opened: {error}") from error
        except sqlite3.DatabaseError as error:
            raise StorageError(
                f"{self._path} is damaged or not a database of allot: {error}"
            ) from error

    def load(self) -> Contents:
        """Read all of it. A log that contradicts itself is a `StorageError`."""
        with self._told_plainly():
            compacted = self._compacted()
            entries: dict[str, Entry] = {}
            for place, key, created, previous, value in self._connection.execute(
                "SELECT place, key, created, previous, value FROM log ORDER BY place"
            ):
                revision = place >> POSITION_BITS
                if revision > compacted:
                    known = entries.get(key)
                    if previous != (known.revision if known else 0):
                        raise StorageError(
                            f"{self._path} is damaged: at revision {revision} the history of {key!r} has a gap"
                        )
                if value is None:
                    entries.pop(key, None)
                else:
                    entries[key] = Entry(key, value, revision, created)
            return Contents(entries.values(), self.revision(), compacted)

    def revision(self) -> int:
        """The last revision."""
        row = self._connection.execute("SELECT coalesce(max(place), 0) FROM log").fetchone()
        # The last write may be gone by compaction, if it was a delete.
        return max(int(row[0]) >> POSITION_BITS, self._compacted())

    def append(self, batches: Iterable[Batch], last: int, time: float) -> None:
        """Add the revisions that follow the `last` one; when this returns they are durable."""
        rows = [
            (
                change.revision << POSITION_BITS | position,
                change.key,
                change.entry.created if change.entry else 0,
                change.previous.revision if change.previous else 0,
                change.entry.value if change.entry else None,
            )
            for batch in batches
            for position, change in enumerate(batch)
        ]
        with self._transaction():
            self._connection.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?)", rows)
            # Clocks may be set back, too.
            is_due = abs(time - self._last_time) >= self._seconds_between_times
            if is_due and last:
                self._connection.execute("INSERT OR REPLACE INTO times VALUES (?, ?)", (last, time))
        if is_due:
            self._last_time = time

    def write_nothing(self) -> None:
        """Commit a write that changes nothing, to see whether that is possible."""
        with self._transaction():
            self._connection.execute("UPDATE progress SET compacted = compacted")

    def explain(self, error: sqlite3.Error) -> StoreUnavailableError:
        """What went wrong, in a sentence that names the file."""
        name = getattr(error, "sqlite_errorname", "")
        is_full = name == "SQLITE_FULL"
        if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")):
            with suppress(OSError):
                is_full = os.statvfs(self._path.parent).f_bavail == 0
        if is_full:
            return StoreFullError(
                f"no space left on the disk of {self._path}; free some, and writes succeed again"
            )
        return StoreUnavailableError(f"{self._path}: {error}")

    def reconnect(self) -> None:
        """Go on after an error."""
        connection = self._connect()
        self._connection.close()
        self._connection = connection

    def history(
        self, prefix: str, after: int, upto: int, max_changes: int, max_bytes: int = 8 << 20
    ) -> HistoryPage:
        """Changes after one revision and up to another, whole revisions only; or `CompactedError`."""
        with self._snapshot(after):
            rows = self._connection.execute(_HISTORY, _span(prefix, after, upto))
            batches: list[Batch] = []
            batch: list[Change] = []
            size = 0
            for count, row in enumerate(rows):
                place, key, created, value, previous, previous_created, previous_value = row
                revision = place >> POSITION_BITS
                if batch and batch[0].revision != revision:
                    batches.append(tuple(batch))
                    batch = []
                    if count >= max_changes or size >= max_bytes:
                        rows.close()
                        return HistoryPage(batches, batches[-1][0].revision)
                entry = None if value is None else Entry(key, value, revision, created)
                before = (
                    Entry(key, previous_value, previous, previous_created) if previous else None
                )
                batch.append(Change(revision, key, entry, before))
                size += len(value or b"") + len(previous_value or b"")
            if batch:
                batches.append(tuple(batch))
            return HistoryPage(batches, upto)

    def past(self, prefix: str, revision: int, upto: int) -> dict[str, Entry | None]:
        """What the keys changed after `revision` and up to another were then; or `CompactedError`."""
        with self._snapshot(revision):
            rows = self._connection.execute(_PAST, _span(prefix, revision, upto))
            return {
                key: Entry(key, value, previous, created) if previous else None
                for key, previous, created, value in rows
            }

    def last_revision_before(self, time: float) -> int:
        """A revision that was not yet followed by another at `time`; 0 if none is known."""
        row = self._connection.execute(
            "SELECT coalesce(max(revision), 0) FROM times WHERE time <= ?", (time,)
        ).fetchone()
        return int(row[0])

    def forget(self, revision: int, max_rows: int) -> int:
        """Compact a stretch of the way to `revision`. How far it went comes back."""
        with self._transaction():
            compacted = self._compacted()
            if revision <= compacted:
                return compacted
            rows = self._fates(compacted, revision, max_rows)
            reached = revision
            if len(rows) == max_rows:  # the last of these revisions may not be whole
                reached = max((rows[-1][0] >> POSITION_BITS) - 1, compacted + 1)
                rows = self._fates(compacted, reached, MAX_CHANGES_PER_WRITE + max_rows)
            self._connection.executemany(
                "DELETE FROM log WHERE place >= ? AND place < ? AND key = ?",
                [
                    (previous << POSITION_BITS, previous + 1 << POSITION_BITS, key)
                    for _, key, previous, _ in rows
                    if previous
                ],
            )
            self._connection.executemany(
                "DELETE FROM log WHERE place = ?",
                [(place,) for place, _, _, is_deletion in rows if is_deletion],
            )
            self._connection.execute("DELETE FROM times WHERE revision <= ?", (reached,))
            self._connection.execute("UPDATE progress SET compacted = ?", (reached,))
        return reached

    def _fates(self, after: int, upto: int, max_rows: int) -> list[tuple[int, str, int, bool]]:
        """What compaction needs to know of rows: place, key, previous revision, whether it is a deletion."""
        return self._connection.execute(
            "SELECT place, key, previous, value IS NULL FROM log WHERE place >= ? AND place < ?"
            " ORDER BY place LIMIT ?",
            (after + 1 << POSITION_BITS, upto + 1 << POSITION_BITS, max_rows),
        ).fetchall()

    def close(self) -> None:
        self._connection.close()

    def _compacted(self) -> int:
        row = self._connection.execute("SELECT compacted FROM progress").fetchone()
        return int(row[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _snapshot(self, revision: int) -> Iterator[None]:
        """Read at one moment, in which `revision` must not have been compacted."""
        self._connection.execute("BEGIN")
        try:
            compacted = self._compacted()
            if revision < compacted:
                raise CompactedError(revision, compacted)
            yield
        finally:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")


def _span(prefix: str, after: int, upto: int) -> tuple[int, int, str, str | None, str | None]:
    end = end_of_prefix(prefix)
    return after + 1 << POSITION_BITS, upto + 1 << POSITION_BITS, prefix, end, end


def _bring_to_our_schema(connection: sqlite3.Connection, path: Path) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if version == 0 and application == 0:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise StorageError(f"{path} is a database of another program")
    elif application != APPLICATION_ID:
        raise StorageError(f"{path} is a database of another program")
    if version > len(MIGRATIONS):
        raise StorageError(
            f"{path} was written by a newer version of allot (schema {version}, this one knows"
            f" {len(MIGRATIONS)}); use that version"
        )
    if version < len(MIGRATIONS):
        connection.execute("BEGIN IMMEDIATE")
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")


def _sync_directory(directory: Path) -> None:
    """Make the name of a new file durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
