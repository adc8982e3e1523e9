"""Watches the registry directories of all nodes for the sockets of plugins.

Directories are polled: a directory that has not changed costs one system call. Subdirectories are searched as well;
names that start with a dot are ignored.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from allot.client.clock import Clock

POLL_SECONDS: Final = 0.5
RECENT_SECONDS: Final = 2.0
"""A directory that changed so recently is read again: its time may not show the latest change."""
DIRECTORIES_AT_ONCE: Final = 200


class SocketFile(NamedTuple):
    """A socket in the registry. One that is created again under the same name differs."""

    path: str
    inode: int
    created_ns: int


def sockets_in(directory: str) -> tuple[frozenset[SocketFile], list[str]]:
    """All sockets in a directory tree, and its directories."""
    found: set[SocketFile] = set()
    directories = [directory]
    for place in directories:
        try:
            entries = list(os.scandir(place))
        except OSError:
            continue  # removed meanwhile, or not created yet
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISSOCK(status.st_mode):
                found.add(SocketFile(entry.path, status.st_ino, status.st_ctime_ns))
            elif stat.S_ISDIR(status.st_mode):
                directories.append(entry.path)
    return frozenset(found), directories


class _Watched:
    """One registry directory."""

    def __init__(self, directory: Path, listener: RegistryListener) -> None:
        self._directories = [str(directory)]
        self._changed_ns: list[int] = []
        self._sockets: frozenset[SocketFile] = frozenset()
        self._listener = listener

    def look(self, now_ns: int) -> None:
        times = [_changed_ns(directory) for directory in self._directories]
        is_recent = now_ns - max(times) < RECENT_SECONDS * 1e9
        if times == self._changed_ns and not is_recent:
            return
        before = self._sockets
        self._sockets, self._directories = sockets_in(self._directories[0])
        self._changed_ns = [_changed_ns(directory) for directory in self._directories]
        for socket in sorted(before - self._sockets):
            self._listener.removed(socket)
        for socket in sorted(self._sockets - before):
            self._listener.added(socket)


class RegistryListener(NamedTuple):
    """Callbacks for the sockets of one directory."""

    added: Callable[[SocketFile], None]
    removed: Callable[[SocketFile], None]


class PluginWatcher:
    """Polls the registry directories until cancelled."""

    def __init__(self, clock: Clock, poll_seconds: float = POLL_SECONDS) -> None:
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._watched: dict[Path, _Watched] = {}

    def watch(self, directory: Path, listener: RegistryListener) -> None:
        """Report the sockets that are there, and all later changes."""
        self._watched[directory] = _Watched(directory, listener)

    def forget(self, directory: Path) -> None:
        self._watched.pop(directory, None)

    async def run(self) -> None:
        while True:
            for number, watched in enumerate(tuple(self._watched.values())):
                watched.look(time.time_ns())  # as the file system's times
                if number % DIRECTORIES_AT_ONCE == DIRECTORIES_AT_ONCE - 1:
                    await asyncio.sleep(0)
            await self._clock.sleep(self._poll_seconds)


def _changed_ns(directory: str) -> int:
    try:
        return os.stat(directory).st_mtime_ns  # noqa: PTH116 - one call for each node, twice a second
    except OSError:
        return 0
