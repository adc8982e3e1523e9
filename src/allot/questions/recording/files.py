"""Writes files that only their owner can read, durably."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from allot.storage.directory_sync import sync_directory


def replace_file(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file as a whole: readers see the old one or the new one. Others cannot read it at any time."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
        sync_directory(path.parent)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def append_durably(path: Path, chunks: Iterable[bytes]) -> None:
    """Append all of it or, if that fails, nothing; when this returns it is on disk."""
    with path.open("ab", buffering=0) as file:
        size = file.tell()
        rest = memoryview(b"".join(chunks))
        try:
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(size)
            raise
