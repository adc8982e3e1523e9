"""Commits of SQLite stores that wait until a test lets them go, or makes them fail."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence

import pytest

from allot.storage.revision_log import RevisionLog
from allot.storage.transactions import Batch

HELD_SECONDS = 60.0


class HeldCommits:
    """While held, every commit waits before it is written."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._free = threading.Event()
        self._free.set()
        self._fails = False
        self.begun = 0
        """The commits that were begun."""
        self.count = 0
        """The commits that were written."""
        append = RevisionLog.append

        def held(log: RevisionLog, batches: Sequence[Batch], last: int, time: float) -> None:
            self.begun += 1
            assert self._free.wait(HELD_SECONDS)
            if self._fails:
                raise sqlite3.OperationalError("disk I/O error")
            append(log, batches, last, time)
            self.count += 1

        patch.setattr(RevisionLog, "append", held)

    def hold(self) -> None:
        self._free.clear()

    def release(self) -> None:
        self._fails = False
        self._free.set()

    def fail(self) -> None:
        """Let commits go, and fail until they are released."""
        self._fails = True
        self._free.set()
