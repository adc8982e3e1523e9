"""Reading all of a log when it is opened, and finding out whether it is what was written.

The file is read without being changed: not even what is in the write-ahead log is moved to its place. A file that is
refused is left as it was found.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import error as StructError  # noqa: N812
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from allot.storage.checksums import added, record_checksum, time_checksum
from allot.storage.high_water_mark import UNKNOWN_DIGEST, Mark, mark_path
from allot.storage.interface import DamagedStoreError, Entry
from allot.storage.revision_log import (
    Progress,
    digest_of,
    last_revision,
    mismatch,
    read_progress,
)
from allot.storage.sqlite_schema import POSITION_BITS, read_version

FIRST_WITH_CHECKSUMS: Final = 2
"""The schema version."""
MAX_PAGES_CHECKED: Final = 100_000
"""SQLite's own check of a larger file would keep a server from starting; `allot storage check` does it."""
_POSITION_MASK: Final = (1 << POSITION_BITS) - 1


class Contents(NamedTuple):
    """What a log holds when it is opened."""

    entries: Iterable[Entry]
    revision: int
    compacted: int
    schema: int = 0
    """The version of the file; 0 if it is new."""


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


def load(path: Path, mark: Mark | None) -> Contents:
    """All of it, in any of our schemas. What contradicts itself or the mark is a `DamagedStoreError`."""
    with reading(path) as connection:
        version = read_version(connection, path)
        if not version:
            contents = Contents((), 0, 0)
        else:
            check_pages(connection, MAX_PAGES_CHECKED)
            contents = _read_all(connection, version)
        if mark is not None:
            digest = digest_of(connection, mark.revision) if version > 1 else UNKNOWN_DIGEST
            compare_with_mark(path, contents.revision, digest, mark)
        return contents


def check_pages(connection: sqlite3.Connection, max_pages: int | None) -> None:
    """What SQLite can say about its pages."""
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


def _read_all(connection: sqlite3.Connection, version: int) -> Contents:
    has_checksums = version >= FIRST_WITH_CHECKSUMS
    if has_checksums:
        progress = read_progress(connection)
        _check_times(connection)
    else:
        row = connection.execute("SELECT compacted FROM progress").fetchone()
        progress = Progress(int(row[0]), 0, 0)
    columns = "changes, checksum" if has_checksums else "0, 0"
    rows = connection.execute(
        f"SELECT place, key, created, previous, {columns}, value FROM log ORDER BY place"  # noqa: S608
    )
    try:
        entries = (
            _checked_entries(rows, progress)
            if has_checksums
            else _linked_entries(rows, progress.compacted)
        )
    except (AttributeError, TypeError, StructError) as error:
        raise DamagedStoreError("a record has a value of another type") from error
    return Contents(
        entries.values(),
        last_revision(connection, progress.compacted),
        progress.compacted,
        version,
    )


def _checked_entries(rows: Iterable[Any], progress: Progress) -> dict[str, Entry]:
    compacted = progress.compacted
    entries: dict[str, Entry] = {}
    kept = kept_sum = 0
    last, position, changes = compacted, 0, 1  # revision, place in it, and size of the write before
    for place, key, created, previous, count, checksum, value in rows:
        if record_checksum(place, key, created, previous, count, value) != checksum:
            raise mismatch(key, place)
        revision = place >> POSITION_BITS
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
            last, position, changes = revision, place & _POSITION_MASK, count
            known = entries.get(key)
            if previous != (known.revision if known else 0):
                raise _gap(key, revision)
        if value is None:
            entries.pop(key, None)
        else:
            entries[key] = Entry(key, value, revision, created)
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


def _check_times(connection: sqlite3.Connection) -> None:
    for revision, time, checksum in connection.execute("SELECT * FROM times"):
        if time_checksum(revision, time) != checksum:
            raise DamagedStoreError(f"the time of revision {revision} does not match its checksum")


def _gap(key: str, revision: int) -> DamagedStoreError:
    return DamagedStoreError(f"at revision {revision} the history of {key!r} has a gap")
