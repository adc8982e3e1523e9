"""Reads and verifies a whole log when it is opened.

The file is read without changing it: not even the write-ahead log is checkpointed. A rejected file stays as it was.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from struct import error as StructError  # noqa: N812
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from allot.storage.checksums import added, record_checksum, time_checksum
from allot.storage.high_water_mark import UNKNOWN_DIGEST, Mark, mark_path
from allot.storage.interface import Change, DamagedStoreError, Entry
from allot.storage.revision_log import (
    Progress,
    digest_of,
    last_revision,
    mismatch,
    read_progress,
)
from allot.storage.revision_times import TimeMark
from allot.storage.sqlite_schema import POSITION_BITS, read_version
from allot.storage.transactions import Batch

FIRST_WITH_CHECKSUMS: Final = 2
"""The schema version."""
MAX_PAGES_CHECKED: Final = 100_000
"""SQLite's own check of a larger file would delay the start too much; `allot storage check` runs it."""
_POSITION_MASK: Final = (1 << POSITION_BITS) - 1


class Contents(NamedTuple):
    """The contents of a log when it is opened."""

    entries: Iterable[Entry]
    revision: int
    compacted: int
    schema: int = 0
    """The version of the file; 0 if it is new."""
    recent: Sequence[Batch] = ()
    """The last revisions, for watchers that resume after a restart."""
    marks: Sequence[TimeMark] = ()
    """When revisions were written."""


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that leaves the files as they are."""
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=ro", uri=True, timeout=10, isolation_level=None
    )
    try:
        for pragma in ("cache_size=-16000", "cell_size_check=ON"):
            connection.execute(f"PRAGMA {pragma}")
        yield connection
    finally:
        connection.close()


def load(path: Path, mark: Mark | None, max_recent: int = 0, max_recent_bytes: int = 0) -> Contents:
    """The contents of a file in any schema version. Raises `DamagedStoreError` if it contradicts itself or the mark.

    Includes the changes of the last `max_recent` revisions, within `max_recent_bytes`.
    """
    with reading(path) as connection:
        version = read_version(connection, path)
        if not version:
            contents = Contents((), 0, 0)
        else:
            check_pages(connection, MAX_PAGES_CHECKED)
            contents = _read_all(connection, version, max_recent, max_recent_bytes)
        if mark is not None:
            digest = digest_of(connection, mark.revision) if version > 1 else UNKNOWN_DIGEST
            compare_with_mark(path, contents.revision, digest, mark)
        return contents


def check_pages(connection: sqlite3.Connection, max_pages: int | None) -> None:
    """SQLite's own check of its pages."""
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    if max_pages is not None and pages > max_pages:
        return
    found = [text for (text,) in connection.execute("PRAGMA quick_check(5)")]
    if found != ["ok"]:
        raise DamagedStoreError("; ".join(" ".join(text.split()) for text in found))


def compare_with_mark(path: Path, revision: int, digest: int, mark: Mark) -> None:
    """`DamagedStoreError` if the database at `path` is behind its mark, or of another history."""
    place = mark_path(path)
    if revision < mark.revision:
        raise DamagedStoreError(
            f"its last revision is {revision}, but {place.name} says that {mark.revision} was written"
            f"{_where_it_went(path, mark)}"
        )
    if digest != UNKNOWN_DIGEST != mark.digest and digest != mark.digest:
        raise DamagedStoreError(
            f"its revision {mark.revision} is not the one that {place.name} knows: it is from another history"
        )


def _where_it_went(path: Path, mark: Mark) -> str:
    wal = path.with_name(path.name + "-wal")
    has_wal = wal.exists() and wal.stat().st_size > 0
    if mark.is_clean:
        older = "it is older than when it was closed"
        return f"; {wal.name} was not there then" if has_wal else f"; {older}"
    if has_wal:
        return f"; {wal.name} is damaged or cut off, or {path.name} is an older copy"
    return f"; {wal.name}, which had the last writes, is missing, or {path.name} is an older copy"


def _read_all(
    connection: sqlite3.Connection, version: int, max_recent: int, max_recent_bytes: int
) -> Contents:
    """Everything that is stored. A damaged page may be read as a page of another table."""
    try:
        return _read_tables(connection, version, max_recent, max_recent_bytes)
    except (AttributeError, TypeError, StructError) as error:
        raise DamagedStoreError("a record has a value of another type") from error


def _read_tables(
    connection: sqlite3.Connection, version: int, max_recent: int, max_recent_bytes: int
) -> Contents:
    has_checksums = version >= FIRST_WITH_CHECKSUMS
    if has_checksums:
        progress = read_progress(connection)
        marks = _checked_times(connection)
    else:
        row = connection.execute("SELECT compacted FROM progress").fetchone()
        progress = Progress(int(row[0]), 0, 0)
        marks = []
    columns = "changes, checksum" if has_checksums else "0, 0"
    rows = connection.execute(
        f"SELECT place, key, created, previous, {columns}, value FROM log ORDER BY place"  # noqa: S608
    )
    last = last_revision(connection, progress.compacted)
    recent = _Recent(max(progress.compacted, last - max_recent), max_recent_bytes)
    entries = (
        _checked_entries(rows, progress, recent)
        if has_checksums
        else _linked_entries(rows, progress.compacted)
    )
    return Contents(entries.values(), last, progress.compacted, version, recent.batches(), marks)


class _Recent:
    """The changes after a revision; the oldest are dropped if they have too many bytes."""

    def __init__(self, after: int, max_bytes: int) -> None:
        self.after = after
        self._max_bytes = max_bytes
        self._bytes = 0
        self._batches: deque[tuple[int, list[Change]]] = deque()
        self._last: list[Change] = []

    def next_batch(self) -> list[Change]:
        """Where the changes of the next revision go."""
        self._settle()
        return self._last

    def batches(self) -> Sequence[Batch]:
        self._settle()
        return [tuple(batch) for _, batch in self._batches]

    def _settle(self) -> None:
        if self._last:
            size = sum(
                (len(change.entry.value) if change.entry else 0)
                + (len(change.previous.value) if change.previous else 0)
                for change in self._last
            )
            self._batches.append((size, self._last))
            self._bytes += size
            self._last = []
        while self._bytes > self._max_bytes:
            self._bytes -= self._batches.popleft()[0]


def _checked_entries(rows: Iterable[Any], progress: Progress, recent: _Recent) -> dict[str, Entry]:
    compacted = progress.compacted
    entries: dict[str, Entry] = {}
    kept = kept_sum = 0
    recent_after, batch = recent.after, recent.next_batch()
    last, position, changes = compacted, 0, 1  # revision, place in it, and size of the write before
    for place, key, created, previous, count, checksum, value in rows:
        if record_checksum(place, key, created, previous, count, value) != checksum:
            raise mismatch(key, place)
        revision = place >> POSITION_BITS
        entry = None if value is None else Entry(key, value, revision, created)
        if revision <= compacted:
            kept += 1
            kept_sum += checksum
        else:
            follows = (
                place == (last << POSITION_BITS | position + 1)
                if revision == last
                else position + 1 == changes and place == last + 1 << POSITION_BITS
            )
            if not follows:
                raise DamagedStoreError(f"records after revision {last} are missing")
            if revision != last and revision > recent_after:
                batch = recent.next_batch()
            last, position, changes = revision, place & _POSITION_MASK, count
            known = entries.get(key)
            if previous != (known.revision if known else 0):
                raise _gap(key, revision)
            if revision > recent_after:
                batch.append(Change(revision, key, entry, known))
        if entry is None:
            entries.pop(key, None)
        else:
            entries[key] = entry
    if position + 1 != changes:
        raise DamagedStoreError(f"records of revision {last} are missing")
    if (kept, added(0, kept_sum)) != (progress.kept, progress.kept_sum):
        raise DamagedStoreError(
            f"of {progress.kept} records up to revision {compacted} there are {kept}, or not the same ones"
        )
    return entries


def _linked_entries(rows: Iterable[Any], compacted: int) -> dict[str, Entry]:
    """Of a log without checksums."""
    entries: dict[str, Entry] = {}
    for place, key, created, previous, _, _, value in rows:
        revision = place >> POSITION_BITS
        if revision > compacted:
            known = entries.get(key)
            if previous != (known.revision if known else 0):
                raise _gap(key, revision)
        if value is None:
            entries.pop(key, None)
        else:
            entries[key] = Entry(key, value, revision, created)
    return entries


def _checked_times(connection: sqlite3.Connection) -> list[TimeMark]:
    marks = []
    for revision, time, checksum in connection.execute("SELECT * FROM times"):
        if time_checksum(revision, time) != checksum:
            raise DamagedStoreError(f"the time of revision {revision} does not match its checksum")
        marks.append(TimeMark(revision, time))
    return marks


def _gap(key: str, revision: int) -> DamagedStoreError:
    return DamagedStoreError(f"at revision {revision} the history of {key!r} has a gap")
