"""The revision log in an SQLite file: the changes of all kept revisions.

A row is the result of one write to one key. Its place is the revision and the position in the write, so that the log
is append-only and ordered like the changes. It has the revision of the key's previous row: watchers get previous values
by it, and compaction finds superseded rows without an index. For each compacted revision it removes the previous row of
each row, and each deletion.

Every row has a checksum, which is verified with every read. Missing rows are detected too: after the compacted revision
the sequence must be complete, and up to it the number of rows and the sum of their checksums are stored
(`log_verification.py`). Rows missing at the end are detected by the mark (`high_water_mark.py`).

This module is blocking code; `sqlite.py` decides which thread runs it.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from allot.storage.broadcast import HistoryPage
from allot.storage.checksums import added, progress_checksum, record_checksum, time_checksum
from allot.storage.high_water_mark import UNKNOWN_DIGEST, HighWaterMark
from allot.storage.interface import (
    Change,
    CompactedError,
    DamagedStoreError,
    Entry,
)
from allot.storage.revision_times import SECONDS_BETWEEN_MARKS
from allot.storage.sqlite_schema import POSITION_BITS, migrate, read_version
from allot.storage.transactions import Batch, end_of_prefix

PRAGMAS: Final = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "journal_size_limit=67108864",
    "cache_size=-4000",
    "secure_delete=OFF",
    "cell_size_check=ON",
    "automatic_index=OFF",  # it would index the whole log to find one row
)

PAGE_SIZE: Final = 16 << 10
"""Of new files: a commit writes each page that it changes in two calls, and objects of 2 KiB fill pages of 4 KiB badly."""
CHECKPOINT_BYTES: Final = 16 << 20
"""The size of the write-ahead log from which it is written back."""

MAX_CHANGES_PER_WRITE: Final = 1 << POSITION_BITS
MAX_ROWS_PER_STATEMENT: Final = 64
"""Statements are prepared once for each number of rows, and are kept: all of them take 2 MB."""

_PREVIOUS_ROW: Final = (
    f"BETWEEN l.previous << {POSITION_BITS} AND (l.previous + 1 << {POSITION_BITS}) - 1"
)
_ROW: Final = "place, {0}.key, {0}.created, {0}.previous, {0}.changes, {0}.checksum, {0}.value"
_HISTORY: Final = f"""
    SELECT l.{_ROW.format("l")}, p.{_ROW.format("p")}
    FROM log l LEFT JOIN log p ON l.previous > 0 AND p.place {_PREVIOUS_ROW} AND p.key = l.key
    WHERE l.place >= ? AND l.place < ? AND l.key >= ? AND (l.key < ? OR ? IS NULL)
    ORDER BY l.place
"""  # noqa: S608
_PAST: Final = f"""
    SELECT l.key, l.previous, p.{_ROW.format("p")}
    FROM (
        SELECT key, previous, min(place) FROM log
        WHERE place >= ? AND place < ? AND key >= ? AND (key < ? OR ? IS NULL)
        GROUP BY key
    ) l LEFT JOIN log p ON l.previous > 0 AND p.place {_PREVIOUS_ROW} AND p.key = l.key
"""  # noqa: S608


class Record(NamedTuple):
    """A row of the log."""

    place: int
    key: str
    created: int
    previous: int
    changes: int
    checksum: int
    value: bytes | None

    @property
    def revision(self) -> int:
        return self.place >> POSITION_BITS

    @property
    def entry(self) -> Entry | None:
        return (
            self.value
            if self.value is None
            else Entry(self.key, self.value, self.revision, self.created)
        )


class Progress(NamedTuple):
    """The compacted revision, and the remaining rows up to it."""

    compacted: int
    kept: int
    kept_sum: int


class RevisionLog:
    """One connection to the file. For use by one thread at a time."""

    def __init__(self, path: Path, *, seconds_between_times: float = SECONDS_BETWEEN_MARKS) -> None:
        """Open the file and migrate its schema. Raises `StorageError` or `sqlite3.Error`."""
        self._path = path
        self._mark: HighWaterMark | None = None
        self._seconds_between_times = seconds_between_times
        self._last_time = -math.inf
        self._connection = self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=10, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute(f"PRAGMA page_size={PAGE_SIZE}")  # a file that exists keeps its own
            migrate(connection, read_version(connection, self._path))
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}").fetchall()
            (page_size,) = connection.execute("PRAGMA page_size").fetchone()
            connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_BYTES // page_size}")
        except BaseException:
            connection.close()
            raise
        return connection

    def follow_with(self, mark: HighWaterMark) -> None:
        """From now on the mark advances with what is appended."""
        self._mark = mark

    def revision(self) -> int:
        """The last revision."""
        return last_revision(self._connection, self._progress().compacted)

    def digest(self, revision: int) -> int:
        """The checksum of the last record of a revision."""
        return digest_of(self._connection, revision)

    def append(self, batches: Iterable[Batch], last: int, time: float) -> None:
        """Add the revisions that follow the `last` one; when this returns they are durable."""
        rows = [
            _row(change, position, len(batch))
            for batch in batches
            for position, change in enumerate(batch)
        ]
        # The clock may also be set back.
        is_due = abs(time - self._last_time) >= self._seconds_between_times
        if len(rows) <= MAX_ROWS_PER_STATEMENT and not is_due:
            # A transaction of its own, in one call: the interpreter lock changes hands once.
            self._insert(rows)
        else:
            with self._transaction():
                for start in range(0, len(rows), MAX_ROWS_PER_STATEMENT):
                    self._insert(rows[start : start + MAX_ROWS_PER_STATEMENT])
                if is_due and last:
                    self._connection.execute(
                        "INSERT OR REPLACE INTO times VALUES (?, ?, ?)",
                        (last, time, time_checksum(last, time)),
                    )
        if is_due:
            self._last_time = time
        if self._mark is not None:
            place, *_, checksum, _value = rows[-1]
            self._mark.advance(place >> POSITION_BITS, checksum)

    def _insert(self, rows: Sequence[Iterable[Any]]) -> None:
        self._connection.execute(_insert(len(rows)), [*chain.from_iterable(rows)])

    def begin_with(self, records: Iterable[Record], revision: int) -> None:
        """Fill an empty log with the remaining records of a log that was compacted up to `revision`."""
        kept = list(records)
        kept_sum = 0
        for record in kept:
            kept_sum = added(kept_sum, record.checksum)
        with self._transaction():
            self._connection.executemany(_insert(1), kept)
            write_progress(self._connection, Progress(revision, len(kept), kept_sum))

    def write_nothing(self) -> None:
        """Commit an empty write, to check whether writes succeed."""
        with self._transaction():
            self._connection.execute("UPDATE progress SET compacted = compacted")

    def reconnect(self) -> None:
        """Reconnect after an error."""
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
                record = self._checked(row[:7])
                previous = self._checked_previous(record.key, record.previous, row[7:])
                if batch and batch[0].revision != record.revision:
                    batches.append(tuple(batch))
                    batch = []
                    if count >= max_changes or size >= max_bytes:
                        rows.close()
                        return HistoryPage(batches, batches[-1][0].revision)
                batch.append(Change(record.revision, record.key, record.entry, previous))
                size += len(record.value or b"") + (len(previous.value) if previous else 0)
            if batch:
                batches.append(tuple(batch))
            return HistoryPage(batches, upto)

    def past(self, prefix: str, revision: int, upto: int) -> dict[str, Entry | None]:
        """The entries at `revision` of keys that changed after it, up to `upto`. Raises `CompactedError`."""
        with self._snapshot(revision):
            rows = self._connection.execute(_PAST, _span(prefix, revision, upto))
            return {key: self._checked_previous(key, previous, row) for key, previous, *row in rows}

    def last_revision_before(self, time: float) -> int:
        """The last recorded revision before `time`; 0 if none is recorded."""
        row = self._connection.execute(
            "SELECT coalesce(max(revision), 0) FROM times WHERE time <= ?", (time,)
        ).fetchone()
        return int(row[0])

    def forget(self, revision: int, max_rows: int) -> int:
        """Compact towards `revision`, at most `max_rows` rows; the compacted revision."""
        with self._transaction():
            compacted, kept, kept_sum = self._progress()
            if revision <= compacted:
                return compacted
            rows = self._fates(compacted, revision, max_rows)
            reached = revision
            if len(rows) == max_rows:  # the last of these revisions may be incomplete
                reached = max((rows[-1].place >> POSITION_BITS) - 1, compacted + 1)
                rows = self._fates(compacted, reached, MAX_CHANGES_PER_WRITE + max_rows)
            kept += len(rows)
            for row in rows:
                kept_sum = added(kept_sum, row.checksum)
            gone = [(row.place, row.checksum) for row in rows if row.is_deletion]
            gone += [self._superseded(row) for row in rows if row.previous]
            self._connection.executemany(
                "DELETE FROM log WHERE place = ?", [(place,) for place, _ in gone]
            )
            kept -= len(gone)
            for _, checksum in gone:
                kept_sum = added(kept_sum, -checksum)
            self._connection.execute("DELETE FROM times WHERE revision < ?", (reached,))
            write_progress(self._connection, Progress(reached, kept, kept_sum))
        return reached

    def _fates(self, after: int, upto: int, max_rows: int) -> list[_Fate]:
        rows = self._connection.execute(
            "SELECT place, key, previous, checksum, value IS NULL FROM log"
            " WHERE place >= ? AND place < ? ORDER BY place LIMIT ?",
            (after + 1 << POSITION_BITS, upto + 1 << POSITION_BITS, max_rows),
        )
        return [_Fate(*row) for row in rows]

    def _superseded(self, row: _Fate) -> tuple[int, int]:
        """Place and checksum of the previous row of the same key."""
        first = row.previous << POSITION_BITS
        found = self._connection.execute(
            "SELECT place, checksum FROM log WHERE place >= ? AND place < ? AND key = ?",
            (first, first + MAX_CHANGES_PER_WRITE, row.key),
        ).fetchone()
        if found is None:
            raise _lost(row.key, row.previous)
        place, checksum = found
        return place, checksum

    def close(self) -> None:
        self._connection.close()

    def _progress(self) -> Progress:
        return read_progress(self._connection)

    def _checked(self, row: Iterable[Any]) -> Record:
        record = Record(*row)
        if not is_intact(record):
            raise mismatch(record.key, record.place)
        return record

    def _checked_previous(self, key: str, revision: int, row: Iterable[Any]) -> Entry | None:
        """The entry of a key written at `revision`; None if that is 0."""
        if not revision:
            return None
        record = Record(*row)
        if record.place is None:
            raise _lost(key, revision)
        return self._checked(record).entry

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
        """A read transaction in which `revision` must not be compacted."""
        self._connection.execute("BEGIN")
        try:
            compacted = self._progress().compacted
            if revision < compacted:
                raise CompactedError(revision, compacted)
            yield
        finally:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")


class _Fate(NamedTuple):
    """The fields of a row that compaction needs."""

    place: int
    key: str
    previous: int
    checksum: int
    is_deletion: bool


@cache
def _insert(rows: int) -> str:
    return f"INSERT INTO log VALUES {', '.join(['(?, ?, ?, ?, ?, ?, ?)'] * rows)}"  # noqa: S608


def _row(change: Change, position: int, changes: int) -> tuple[Any, ...]:
    """The fields of a `Record`."""
    place = change.revision << POSITION_BITS | position
    entry, before = change.entry, change.previous
    created, value = (entry.created, entry.value) if entry else (0, None)
    previous = before.revision if before else 0
    checksum = record_checksum(place, change.key, created, previous, changes, value)
    return (place, change.key, created, previous, changes, checksum, value)


def is_intact(record: Record) -> bool:
    """Whether a row matches its checksum."""
    place, key, created, previous, changes, checksum, value = record
    return record_checksum(place, key, created, previous, changes, value) == checksum


def mismatch(key: str, place: int) -> DamagedStoreError:
    return DamagedStoreError(
        f"the record of {key!r} at revision {place >> POSITION_BITS} does not match its checksum"
    )


def _lost(key: str, revision: int) -> DamagedStoreError:
    return DamagedStoreError(f"the record of {key!r} at revision {revision} is missing")


def last_revision(connection: sqlite3.Connection, compacted: int) -> int:
    """The last revision; its row may be compacted if it was a delete."""
    row = connection.execute("SELECT coalesce(max(place), 0) FROM log").fetchone()
    return max(int(row[0]) >> POSITION_BITS, compacted)


def digest_of(connection: sqlite3.Connection, revision: int) -> int:
    """The checksum of the last remaining record of a revision."""
    first = revision << POSITION_BITS
    row = connection.execute(
        "SELECT checksum FROM log WHERE place >= ? AND place < ? ORDER BY place DESC LIMIT 1",
        (first, first + MAX_CHANGES_PER_WRITE),
    ).fetchone()
    return int(row[0]) if row else UNKNOWN_DIGEST


def read_progress(connection: sqlite3.Connection) -> Progress:
    """May raise `DamagedStoreError`."""
    rows = connection.execute("SELECT compacted, kept, kept_sum, checksum FROM progress").fetchall()
    if len(rows) != 1 or progress_checksum(*rows[0][:3]) != rows[0][3]:
        raise DamagedStoreError("the record of what was compacted does not match its checksum")
    return Progress(*rows[0][:3])


def write_progress(connection: sqlite3.Connection, progress: Progress) -> None:
    connection.execute(
        "UPDATE progress SET compacted = ?, kept = ?, kept_sum = ?, checksum = ?",
        (*progress, progress_checksum(*progress)),
    )


def _span(prefix: str, after: int, upto: int) -> tuple[int, int, str, str | None, str | None]:
    end = end_of_prefix(prefix)
    return after + 1 << POSITION_BITS, upto + 1 << POSITION_BITS, prefix, end, end
