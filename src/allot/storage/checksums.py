"""Checksums of the rows of an SQLite file: 64 bits over all fields.

They guard against damage, not against forgery.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import Final

_RECORD: Final = Struct("<qqqqqq").pack
_ROW: Final = Struct("<8sqqq").pack
_TIME: Final = Struct("<8sqd").pack
_NO_VALUE: Final = -1


def record_checksum(
    place: int, key: str, created: int, previous: int, changes: int, value: bytes | None
) -> int:
    """The checksum of a row of the log."""
    text = key.encode()
    size = _NO_VALUE if value is None else len(value)
    head = _RECORD(place, created, previous, changes, len(text), size)
    return _sum64(head + text if value is None else b"%b%b%b" % (head, text, value))


def progress_checksum(compacted: int, kept: int, kept_sum: int) -> int:
    """The checksum of the compaction progress, and of the remaining rows of the compacted part."""
    return _sum64(_ROW(b"progress", compacted, kept, kept_sum))


def time_checksum(revision: int, time: float) -> int:
    """The checksum of the time of a revision."""
    return _sum64(_TIME(b"time", revision, time))


def mark_checksum(content: bytes) -> bytes:
    """The checksum of a slot of the high-water mark."""
    return blake2b(content, digest_size=8).digest()


def added(total: int, checksum: int) -> int:
    """The sum of checksums as a signed 64-bit integer, as in SQLite."""
    return (total + checksum + (1 << 63)) % (1 << 64) - (1 << 63)


def _sum64(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little", signed=True)
