"""The file of an audit log: lines are appended; a large file is rotated."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

MEGABYTE: Final = 1024 * 1024
STANDARD_OUTPUT: Final = Path("-")
_TIME: Final = "%Y-%m-%dT%H-%M-%S.%f"


class Rotation(NamedTuple):
    """When a file is rotated, and how many are kept. Zero means no limit."""

    max_megabytes: int = 100
    max_backups: int = 0
    max_age_days: int = 0


class LogFile:
    """Appends lines; they survive a crash of this process."""

    def __init__(self, path: Path, rotation: Rotation, clock: Callable[[], datetime]) -> None:
        """Raises `OSError` if the file cannot be written."""
        self._path = path
        self._rotation = rotation
        self._clock = clock
        self._size = 0
        self._file = self._open()

    def write(self, lines: bytes) -> None:
        limit = self._rotation.max_megabytes * MEGABYTE
        if limit and self._size and self._size + len(lines) > limit:
            self._rotate()
        self._file.write(lines)
        self._file.flush()
        self._size += len(lines)

    def close(self) -> None:
        if self._path != STANDARD_OUTPUT:
            self._file.close()

    def _open(self) -> BinaryIO:
        if self._path == STANDARD_OUTPUT:
            return sys.stdout.buffer
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = self._path.open("ab")
        self._path.chmod(0o600)
        self._size = file.tell()
        return file

    def _rotate(self) -> None:
        if self._path == STANDARD_OUTPUT:
            return
        self._file.close()
        written = self._clock().strftime(_TIME)[:-3]
        path = self._path
        path.rename(path.with_name(f"{path.stem}-{written}{path.suffix}"))
        self._file = self._open()
        self._remove_old()

    def _remove_old(self) -> None:
        backups = sorted(self._backups(), reverse=True)
        keep, days = self._rotation.max_backups, self._rotation.max_age_days
        oldest = self._clock() - timedelta(days=days)
        for index, (written, path) in enumerate(backups):
            if (keep and index >= keep) or (days and written < oldest):
                with contextlib.suppress(OSError):
                    path.unlink()

    def _backups(self) -> list[tuple[datetime, Path]]:
        stem, suffix = self._path.stem, self._path.suffix
        found = []
        for path in self._path.parent.glob(f"{stem}-*{suffix}"):
            text = path.name.removeprefix(f"{stem}-").removesuffix(suffix)
            with contextlib.suppress(ValueError):
                written = datetime.strptime(text, _TIME).replace(tzinfo=self._clock().tzinfo)
                found.append((written, path))
        return found
