"""The high-water mark: a small file beside the database with its last revision.

It is written after each commit and before the writes are acknowledged, so it is never ahead of the database, unless the
database has lost writes. It is not synced each time, because that would double the cost of a write: after `kill -9` it
is exact, after a power failure it may be some seconds behind, which is not an error.

Two slots are written in turn, so that a torn write leaves the other one:

    magic  number  revision  digest of the revision's last record  whether it was closed cleanly  checksum
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from allot.storage.checksums import mark_checksum
from allot.storage.directory_sync import sync_directory
from allot.storage.interface import DamagedStoreError

_MAGIC: Final = b"allotmrk"
_SLOT: Final = Struct("<8sqqq?7x")
_CHECKSUM_BYTES: Final = 8
_SLOT_BYTES: Final = _SLOT.size + _CHECKSUM_BYTES
_SLOT_DISTANCE: Final = 4096
"""Each slot is in a sector of its own."""
UNKNOWN_DIGEST: Final = 0

logger = logging.getLogger(__name__)


class Mark(NamedTuple):
    """The last revision of a database."""

    revision: int
    digest: int = UNKNOWN_DIGEST
    """The checksum of the last record of that revision."""
    is_clean: bool = False
    """Whether it was closed after that, and everything is in its main file."""


class _Slot(NamedTuple):
    number: int
    mark: Mark


def mark_path(path: Path) -> Path:
    return path.with_name(path.name + "-mark")


def read_mark(path: Path) -> Mark | None:
    """The mark of the database at `path`; None if it has no mark. `DamagedStoreError` if it cannot be read."""
    slot = _read_slot(path)
    return slot and slot.mark


def _read_slot(path: Path) -> _Slot | None:
    place = mark_path(path)
    try:
        content = place.read_bytes()
    except FileNotFoundError:
        return None
    slots = [slot for start in (0, _SLOT_DISTANCE) if (slot := _decode(content, start))]
    if not slots:
        raise DamagedStoreError(
            f"{place} is damaged, so it is not known whether {path} has lost its last writes"
        )
    return max(slots)


def _decode(content: bytes, start: int) -> _Slot | None:
    slot = content[start : start + _SLOT_BYTES]
    if len(slot) < _SLOT_BYTES or mark_checksum(slot[: _SLOT.size]) != slot[_SLOT.size :]:
        return None
    magic, number, revision, digest, is_clean = _SLOT.unpack_from(slot)
    return _Slot(number, Mark(revision, digest, is_clean)) if magic == _MAGIC else None


class HighWaterMark:
    """The mark of a database that is open. For use by one thread at a time."""

    def __init__(self, path: Path, mark: Mark) -> None:
        """Begin with `mark`, durably."""
        slot = _read_slot(path)
        self._number = slot.number if slot else 0
        self._has_failed = False
        self.mark = mark
        self._place = mark_path(path)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(self._place, flags, 0o600)
        try:
            if slot is None:
                os.pwrite(self._file, bytes(2 * _SLOT_DISTANCE), 0)
                self._write(mark)
            self._write(mark)
            os.fsync(self._file)
            sync_directory(path.parent)
        except BaseException:
            os.close(self._file)
            raise

    def advance(self, revision: int, digest: int) -> None:
        """The database is at `revision`. If the mark cannot be written, it stays behind, and nothing fails."""
        try:
            self._write(Mark(revision, digest))
        except OSError as error:
            if not self._has_failed:
                logger.warning("%s cannot be written: %s", self._place, error.strerror)
            self._has_failed = True

    def sync(self) -> None:
        os.fsync(self._file)

    def close(self, is_clean: bool) -> None:
        """`is_clean` if everything is in the main file of the database."""
        try:
            if is_clean:
                self._write(self.mark._replace(is_clean=True))
            self.sync()
        finally:
            os.close(self._file)

    def _write(self, mark: Mark) -> None:
        number = self._number + 1
        slot = _SLOT.pack(_MAGIC, number, *mark)
        os.pwrite(self._file, slot + mark_checksum(slot), number % 2 * _SLOT_DISTANCE)
        self._number, self.mark = number, mark
