"""A file that only one process may have open."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from allot.storage.interface import StorageError


class FileLock:
    """Held from its creation until it is released or the process exits."""

    def __init__(self, path: Path) -> None:
        """Acquire the lock for `path`. Raises `StorageError` if another process holds it."""
        place = path.with_name(path.name + ".lock")
        self._file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._file, 20).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise StorageError(
                f"{path} is in use by another process (pid {holder}); stop it, or choose another file"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._file)
