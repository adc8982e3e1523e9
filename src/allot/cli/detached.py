"""`allot up --detach`: the cluster in a process of its own, without a terminal.

allot up --detach ── fork ──▶ the cluster, in its own session, with a log file
       ◀── pipe: progress, ready or error ──┘
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol

import click

from allot.cli.data_directory import LOG_FILE
from allot.cli.errors import EXIT_FINDINGS, EXIT_INTERRUPTED, EXIT_OK, CommandError

_PROGRESS: Final = "progress"
_READY: Final = "ready"
_ERROR: Final = "error"


class Announcer(Protocol):
    """Tells the user how far the cluster is."""

    def progress(self, text: str) -> None: ...

    def ready(self, text: str, problem: str = "") -> None:
        """The cluster runs; `problem` is what is not as it was waited for."""


class Terminal:
    """Announces to the user: the result to standard output, progress to standard error if that is a terminal."""

    def progress(self, text: str) -> None:
        if sys.stderr.isatty():
            click.echo(text, err=True)

    def ready(self, text: str, problem: str = "") -> None:
        click.echo(text)
        if problem:
            click.echo(f"warning: {problem}", err=True)


class _Pipe:
    """Announces to the process that waits."""

    def __init__(self, file: int) -> None:
        self._file = file

    def progress(self, text: str) -> None:
        self.send(_PROGRESS, text)

    def ready(self, text: str, problem: str = "") -> None:
        self.send(_READY, text)
        if problem:
            self.send(_ERROR, problem, EXIT_FINDINGS)
        os.close(self._file)

    def send(self, kind: str, text: str, code: int = 0) -> None:
        with suppress(BrokenPipeError):  # the process that waited has ended
            os.write(self._file, (json.dumps([kind, text, code]) + "\n").encode())


def run_detached(data_dir: Path, work: Callable[[Announcer], None]) -> int:
    """Run the work in another process; returns when it is ready or has failed."""
    log = _open_log(data_dir / LOG_FILE)
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run_child(writing, log, work)
    os.close(writing)
    os.close(log)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return _wait(reading, data_dir / LOG_FILE)
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        click.echo("interrupted: the cluster is stopped", err=True)
        return EXIT_INTERRUPTED


def _open_log(path: Path) -> int:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error


def _run_child(pipe: int, log: int, work: Callable[[Announcer], None]) -> NoReturn:
    code = EXIT_FINDINGS
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        announcer = _Pipe(pipe)
        try:
            work(announcer)
            code = EXIT_OK
        except CommandError as error:
            code = error.exit_code
            click.echo(f"error: {error}", err=True)
            announcer.send(_ERROR, str(error), code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(pipe: int, log: Path) -> int:
    with os.fdopen(pipe) as file:
        is_ready, terminal = False, Terminal()
        for kind, text, code in _messages(file):
            if kind == _ERROR:
                error = CommandError(text)
                error.exit_code = code
                raise error
            is_ready = kind == _READY
            (terminal.ready if is_ready else terminal.progress)(text)
    if is_ready:
        return EXIT_OK
    raise CommandError(f"the cluster has ended before it was ready; see {log}")


def _messages(file: Any) -> Iterator[tuple[str, str, int]]:
    for line in file:
        kind, text, code = json.loads(line)
        yield kind, text, code
