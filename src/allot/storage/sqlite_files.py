"""Opens the files of an SQLite store: verified first, then locked and migrated.

allot.db        the database
allot.db-wal    the last writes, until SQLite moves them to the database
allot.db-mark   the last revision of the database (`high_water_mark.py`)
allot.db.lock   the lock of the process that has it open
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from allot.storage.directory_sync import sync_directory
from allot.storage.file_lock import FileLock
from allot.storage.high_water_mark import (
    HighWaterMark,
    Mark,
    mark_path,
    read_mark,
)
from allot.storage.interface import (
    DamagedStoreError,
    StorageError,
    StoreFullError,
    StoreUnavailableError,
)
from allot.storage.log_verification import FIRST_WITH_CHECKSUMS, Contents, load
from allot.storage.revision_log import RevisionLog

_NOT_DAMAGE: Final = (
    "SQLITE_BUSY",
    "SQLITE_CANTOPEN",
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_LOCKED",
    "SQLITE_NOMEM",
    "SQLITE_PERM",
    "SQLITE_READONLY",
)

logger = logging.getLogger(__name__)


class NoDatabaseError(StorageError):
    """The file is not a database, and has never been one of allot."""


class Files(NamedTuple):
    """The open and locked files."""

    lock: FileLock
    mark: HighWaterMark
    log: RevisionLog
    reader: RevisionLog
    path: Path

    def close(self) -> None:
        try:
            with suppress(sqlite3.Error):
                self.reader.close()
                self.log.close()
            sync_directory(self.path.parent)
            self.mark.close(is_clean=not wal_size(self.path))
        except OSError as error:
            logger.warning("%s was not closed cleanly: %s", self.path, error.strerror)
        finally:
            self.lock.release()


def open_files(path: Path, max_recent: int, max_recent_bytes: int) -> tuple[Files, Contents]:
    """Open or create the store at `path`. Raises `StorageError`, which says what to do."""
    with ExitStack() as cleanup, sqlite_errors_translated(path):
        lock = FileLock(path)
        cleanup.callback(lock.release)
        mark = read_mark(path)
        contents = _inspect(path, mark, max_recent, max_recent_bytes)
        if mark is None and contents.schema >= FIRST_WITH_CHECKSUMS:
            # A backup in a new directory has neither a mark nor a write-ahead log.
            logger.log(
                logging.WARNING if wal_size(path) else logging.INFO,
                "%s is missing: whether %s has lost writes is not known this time",
                mark_path(path),
                path,
            )
        log = RevisionLog(path)
        cleanup.callback(log.close)
        now = Mark(contents.revision, log.digest(contents.revision))
        high_water_mark = HighWaterMark(path, now)
        cleanup.callback(high_water_mark.close, is_clean=False)
        log.follow_with(high_water_mark)
        files = Files(lock, high_water_mark, log, RevisionLog(path), path)
        cleanup.pop_all()
    return files, contents


def _inspect(path: Path, mark: Mark | None, max_recent: int, max_recent_bytes: int) -> Contents:
    """The contents of the file, without changing it. Created if it is missing."""
    if path.exists() and path.stat().st_size:
        return load(path, mark, max_recent, max_recent_bytes)
    state = "is empty" if path.exists() else "is missing"
    if mark is not None and mark.revision:
        raise DamagedStoreError(
            f"it {state}, but {mark_path(path).name} says that revision {mark.revision} was written"
            f" (delete {mark_path(path).name} to begin anew)"
        )
    if wal_size(path):  # SQLite would remove it
        raise DamagedStoreError(f"it {state}, but {path.name}-wal is not")
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        sync_directory(path.parent)
    return Contents((), 0, 0)


def wal_size(path: Path) -> int:
    """The size of the write-ahead log."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size
    except FileNotFoundError:
        return 0


@contextmanager
def sqlite_errors_translated(path: Path) -> Iterator[None]:
    """Translate errors of the file system and of SQLite to `StorageError` with the path."""
    try:
        yield
    except DamagedStoreError as error:
        raise damaged(path, str(error)) from error
    except OSError as error:
        raise StorageError(
            f"{error.filename or path} cannot be opened: {error.strerror or error}"
        ) from error
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if name == "SQLITE_NOTADB" and not mark_path(path).exists():
            raise NoDatabaseError(
                f"{path} is damaged or not a database of allot: {error}; choose another file"
            ) from error
        if not name.startswith(_NOT_DAMAGE):
            raise damaged(path, str(error)) from error
        if is_full(path, error):
            raise StorageError(
                f"{path} cannot be opened: no space left on its disk; free some and start again"
            ) from error
        raise StorageError(f"{path} cannot be opened: {error}") from error


def damaged(path: Path, what: str) -> DamagedStoreError:
    """The error for a damaged file, with what to do."""
    return DamagedStoreError(
        f"{path} is damaged: {what}. Restore a backup into a new directory, or save what is intact:"
        f" `allot storage check {path}`, `allot storage rescue {path} --to NEW`"
    )


def explain(path: Path, error: sqlite3.Error) -> StoreUnavailableError:
    """The error for a failed operation of an open store, with the path."""
    if is_full(path, error):
        return StoreFullError(
            f"no space left on the disk of {path}; free some, and writes succeed again"
        )
    return StoreUnavailableError(f"{path}: {error}")


def is_full(path: Path, error: sqlite3.Error) -> bool:
    """Whether the disk is full. SQLite reports it only for some writes."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")):
        with suppress(OSError):
            return os.statvfs(path.parent).f_bavail == 0
    return bool(name == "SQLITE_FULL")
