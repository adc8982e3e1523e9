"""The data directory of `allot up`: its lock and its files."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from allot.cli.errors import CommandError

DEFAULT: Final = Path(".allot")
KUBECONFIG: Final = "kubeconfig"
SCHEDULER_KUBECONFIG: Final = "scheduler.kubeconfig"
CONTROLLER_MANAGER_KUBECONFIG: Final = "controller-manager.kubeconfig"
NODES_KUBECONFIG: Final = "nodes.kubeconfig"
DRIVER_KUBECONFIG: Final = "driver.kubeconfig"
LAST_START: Final = "up.json"
LOG_FILE: Final = "up.log"
PROCESSES_FILE: Final = "processes.json"
"""Where `allot up --separate` names its processes, for ComponentStatuses."""
_PID_FILE: Final = "up.pid"
_DATABASE: Final = "allot.db"
_OURS: Final = (
    "pki",
    KUBECONFIG,
    SCHEDULER_KUBECONFIG,
    CONTROLLER_MANAGER_KUBECONFIG,
    NODES_KUBECONFIG,
    DRIVER_KUBECONFIG,
    _PID_FILE,
    LAST_START,
    LOG_FILE,
    PROCESSES_FILE,
    _DATABASE,
)
_POLL_SECONDS: Final = 0.05
_LOCK_ATTEMPTS: Final = 10
"""`occupant` locks the file for a moment, too."""

F = TypeVar("F", bound=Callable[..., Any])


def data_dir_option(command: F) -> F:
    return click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        default=DEFAULT,
        show_default=True,
        help="Where the cluster keeps its state.",
    )(command)


@contextmanager
def occupied(directory: Path) -> Iterator[None]:
    """Work in the directory alone, until the end of the block or of the process, however it ends."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(directory / _PID_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}") from error
    try:
        if not _locked_in_time(file):
            raise CommandError(
                f"{directory} is in use by another allot (pid {_read_pid(file)}): "
                f"stop it with `allot down --data-dir {directory}`, or choose another --data-dir"
            )
        try:
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise CommandError(f"{directory / _PID_FILE}: {error.strerror}") from error
        yield
    finally:
        os.close(file)


def occupant(directory: Path) -> int | None:
    """The process that works in the directory now."""
    try:
        file = os.open(directory / _PID_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _lock(file) else _read_pid(file)  # closing the file unlocks it
    finally:
        os.close(file)


def stop_occupant(directory: Path, pid: int, seconds: float) -> None:
    """Ask it to end, and wait until it has."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while occupant(directory) == pid:
        if time.monotonic() > deadline:
            raise CommandError(
                f"process {pid} has not ended after {seconds:g} s; `kill -9 {pid}` ends it, and loses nothing"
            )
        time.sleep(_POLL_SECONDS)


def remove_contents(directory: Path) -> bool:
    """Remove allot's files, and the directory if it is empty then. Returns whether there were any."""
    found = [
        path
        for path in (directory.iterdir() if directory.is_dir() else ())
        if path.name.startswith(_OURS)
    ]
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    with suppress(OSError):
        directory.rmdir()
    return bool(found)


def is_data_directory(directory: Path) -> bool:
    """Whether `allot up` has used the directory."""
    return (directory / _PID_FILE).exists()


def has_objects(directory: Path) -> bool:
    """Whether a cluster has stored objects in the directory."""
    return (directory / _DATABASE).exists()


def _locked_in_time(file: int) -> bool:
    for _ in range(_LOCK_ATTEMPTS):
        if _lock(file):
            return True
        time.sleep(_POLL_SECONDS)
    return False


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_pid(file: int) -> int:
    return int(os.pread(file, 20, 0).strip() or 0)
