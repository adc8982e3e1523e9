"""Process groups that end with the process that started them, also if that is killed and can clean up nothing.

A watcher, a process of its own, waits for the end of a pipe that only the parent can write to. The pipe ends when the
parent does, whatever ends it; the watcher then kills the group, with the processes that its leader has started.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import Final

WATCHER: Final = """\
import os, signal, sys
if not os.read(0, 1):
    try:
        os.killpg(int(sys.argv[1]), signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
"""
_PYTHON: Final = (sys.executable, "-I", "-S", "-c", WATCHER)


class GroupWatcher:
    """Kills a process group when this process ends, until it is released."""

    def __init__(self, group: int) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - a fixed program
            (*_PYTHON, str(group)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends the parent, not its watcher
        )

    def release(self) -> None:
        """The group has ended: its number may become that of another one."""
        with suppress(BrokenPipeError):
            self._process.communicate(b".")
