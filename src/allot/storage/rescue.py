"""Examines a damaged store, and copies intact records to a new one.

Every record that matches its checksum is used, even if SQLite cannot reach it any more. The new store has the last known
version of each key at its revision, and continues well above every revision that was ever assigned: watchers of the old
store must list again, and no resourceVersion is used twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from allot.storage.checksums import progress_checksum, record_checksum
from allot.storage.directory_sync import sync_directory
from allot.storage.file_lock import FileLock
from allot.storage.high_water_mark import HighWaterMark, Mark, read_mark
from allot.storage.interface import DamagedStoreError, StorageError
from allot.storage.log_verification import check_pages, load, reading
from allot.storage.revision_log import (
    Progress,
    Record,
    RevisionLog,
    is_intact,
)
from allot.storage.sqlite_files import NoDatabaseError, sqlite_errors_translated
from allot.storage.sqlite_pages import BadCell, Image, Row
from allot.storage.sqlite_schema import POSITION_BITS

UNKNOWN_REVISIONS: Final = 1_000_000
"""How many revisions are skipped: lost writes may have used unknown revisions."""
_RECORD_COLUMNS: Final = 7
_OLD_RECORD_COLUMNS: Final = 5
_PROGRESS_COLUMNS: Final = 4


class DamagedRecord(NamedTuple):
    """A record that does not match its checksum."""

    key: str
    revision: int
    known: int | None
    """The revision of an intact record of the key, older or newer."""

    @property
    def is_lost(self) -> bool:
        """Whether the last value of the key may be lost."""
        return self.known is None or self.known < self.revision


class Gap(NamedTuple):
    """Revisions without any record."""

    first: int
    last: int


class Examination(NamedTuple):
    """The result of examining a store."""

    problem: str | None
    """Why it cannot be opened."""
    current: tuple[Record, ...]
    """The last known record of each existing key."""
    revision: int
    """The highest known revision."""
    intact: int
    """The number of intact records, including old versions."""
    damaged: tuple[DamagedRecord, ...]
    unreadable_pages: tuple[int, ...]
    gaps: tuple[Gap, ...]
    missing_old: int
    """The number of missing records of the compacted part, whose keys are unknown."""
    notes: tuple[str, ...]


def examine(path: Path) -> Examination:
    """Examine a store that is not in use, without changing it."""
    _must_exist(path)
    lock = FileLock(path)
    try:
        return _examine(path)
    finally:
        lock.release()


def rescue(path: Path, target: Path) -> Examination:
    """Copy the intact records of `path` to a new store at `target`."""
    found = examine(path)
    if not found.current and found.problem is not None:
        raise StorageError(f"nothing in {path} is intact: {found.problem}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError as error:
        raise StorageError(f"{error.filename} exists already; choose another place") from error
    except OSError as error:
        raise StorageError(f"{error.filename} cannot be made: {error.strerror}") from error
    with sqlite_errors_translated(target):
        _write(target, found.current, found.revision + UNKNOWN_REVISIONS)
    return found


def _must_exist(path: Path) -> None:
    if not path.is_file():
        raise StorageError(f"{path}: no such file")


def _examine(path: Path) -> Examination:
    mark, problem = None, None
    notes = []
    try:
        mark = read_mark(path)
    except DamagedStoreError as error:
        problem = str(error)
    try:
        with sqlite_errors_translated(path):
            load(path, mark)
            with reading(path) as connection:
                check_pages(connection, None)
    except (DamagedStoreError, NoDatabaseError) as error:
        problem = problem or str(error)
    if mark is None and problem is None:
        notes.append(
            "it has no mark beside it, so whether its last writes are missing is not known"
        )
    is_stale = mark is not None and mark.is_clean and problem is not None
    image = Image(path, with_wal=not is_stale)
    if is_stale and path.with_name(path.name + "-wal").exists():
        notes.append(f"{path.name}-wal was not there when the store was closed, and is left out")
    findings = _Findings(image)
    if not findings.is_freelist_intact:
        notes.append("which pages are free is not known: objects that were deleted may be back")
    if findings.is_without_checksums:
        notes.append("its records have no checksums: it was written by an earlier version")
    return findings.examination(mark, problem, notes)


class _Findings:
    """The records in the pages of a file."""

    def __init__(self, image: Image) -> None:
        self._by_place: dict[int, Record] = {}
        self._old_by_place: dict[int, Record] = {}
        self._damaged: dict[int, str] = {}
        self._progress: Progress | None = None
        self._bad_pages: set[int] = set()
        free, self.is_freelist_intact = image.free_pages()
        for number in range(1, image.page_count + 1):
            if number in free:
                continue
            for version in image.versions(number):
                if self._take_page(image.rows(version, number)):
                    break
        self.is_without_checksums = not self._by_place and bool(self._old_by_place)

    def _take_page(self, rows: Iterable[Row | BadCell]) -> bool:
        """Whether the whole page is intact."""
        is_intact_page = True
        for row in rows:
            if isinstance(row, BadCell):
                self._bad_pages.add(row.page)
                is_intact_page = False
            elif not self._take(row):
                is_intact_page = False
        return is_intact_page

    def _take(self, row: Row) -> bool:
        if len(row.values) == _PROGRESS_COLUMNS:
            return self._take_progress(row)
        if len(row.values) == _OLD_RECORD_COLUMNS:
            return self._take_old(row)
        if len(row.values) != _RECORD_COLUMNS:
            return True
        match row.values:
            case (
                None,
                str() as key,
                int() as created,
                int() as previous,
                int() as changes,
                int() as checksum,
                None | bytes() as value,
            ):
                record = Record(row.rowid, key, created, previous, changes, checksum, value)
                if is_intact(record):
                    self._by_place.setdefault(row.rowid, record)
                    return True
                self._damaged[row.rowid] = key
            case _:
                self._damaged[row.rowid] = str(row.values[1])
        return False

    def _take_old(self, row: Row) -> bool:
        match row.values:
            case (None, str() as key, int() as created, int() as previous, value) if (
                value is None or isinstance(value, bytes)
            ):
                place = row.rowid
                checksum = record_checksum(place, key, created, previous, 0, value)
                record = Record(place, key, created, previous, 0, checksum, value)
                self._old_by_place.setdefault(place, record)
        return True

    def _take_progress(self, row: Row) -> bool:
        match row.values:
            case (int() as compacted, int() as kept, int() as kept_sum, checksum):
                if progress_checksum(compacted, kept, kept_sum) == checksum:
                    self._progress = self._progress or Progress(compacted, kept, kept_sum)
                    return True
        return False

    def examination(self, mark: Mark | None, problem: str | None, notes: list[str]) -> Examination:
        by_place = self._old_by_place if self.is_without_checksums else self._by_place
        last_by_key: dict[str, Record] = {}
        for _, record in sorted(by_place.items()):
            last_by_key[record.key] = record
        places = sorted(by_place)
        last = places[-1] >> POSITION_BITS if places else 0
        compacted = self._progress.compacted if self._progress else 0
        revision = max(last, compacted, mark.revision if mark else 0)
        missing_old = 0
        gaps: tuple[Gap, ...] = ()
        if self._progress is not None:
            kept = sum(1 for place in places if place >> POSITION_BITS <= compacted)
            missing_old = max(self._progress.kept - kept, 0)
            gaps = tuple(_gaps({place >> POSITION_BITS for place in places}, compacted, revision))
        damaged = []
        for place, key in sorted(self._damaged.items()):
            if place not in by_place:
                known = last_by_key.get(key)
                damaged.append(DamagedRecord(key, place >> POSITION_BITS, known and known.revision))
        return Examination(
            problem,
            tuple(record for _, record in sorted(last_by_key.items()) if record.value is not None),
            revision,
            len(by_place),
            tuple(damaged),
            tuple(sorted(self._bad_pages)),
            gaps,
            missing_old,
            tuple(notes),
        )


def _gaps(revisions: set[int], after: int, upto: int) -> Iterable[Gap]:
    first = 0
    for revision in range(after + 1, upto + 2):
        is_missing = revision not in revisions and revision <= upto
        if is_missing and not first:
            first = revision
        elif not is_missing and first:
            yield Gap(first, revision - 1)
            first = 0


def _write(path: Path, records: Iterable[Record], revision: int) -> None:
    """A new store at `revision`, compacted up to there."""
    log = RevisionLog(path)
    try:
        log.begin_with(records, revision)
    finally:
        log.close()
    sync_directory(path.parent)
    HighWaterMark(path, Mark(revision)).close(is_clean=True)
