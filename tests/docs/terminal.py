"""A terminal in a directory of its own, in which the commands of one page are typed.

It has what a reader of the page has: the project's examples and scripts, `allot` and `kubectl`. Two things are different. What is
installed already is not installed again. And servers take free ports instead of their usual ones, so that several pages can be
tried at once.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.docs.comparison import ANY, is_as_said
from tests.docs.pages import Command, Page

PROJECT: Final = Path(__file__).parents[2]
PATIENCE_SECONDS: Final = 120.0
STOP_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 0.1

_STAYING: Final = (
    "./scripts/up",
    "allot up",
    "allot apiserver",
    "allot scheduler",
    "allot controller-manager",
    "allot nodes",
    "allot binding-controller",
)
"""Programs that run until they are stopped. A reader leaves them their terminal and opens another."""
_AT_ONCE: Final = ("--profiles", "--help")
_LOOKING: Final = (
    "kubectl get",
    "kubectl describe",
    "kubectl allot",
    "allot status",
    "allot explain",
    "curl",
)
"""Commands that change nothing. A reader is slower than we are: they are repeated until they show what the page shows."""

_USUAL_PORTS: Final = {
    "up": 6443,
    "apiserver": 6443,
    "scheduler": 10259,
    "controller-manager": 10257,
}
_OTHER_PORTS: Final = (9090,)
"""Which pages name themselves."""
_ALLOT: Final = """\
#!/bin/sh
case "$1 $*" in
*--port* | *--help*) ;;
{cases}
esac
exec {program} "$@"
"""
_ENVIRONMENT: Final = """\
cd "$(dirname "${BASH_SOURCE[0]}")/.."
prepare_environment() { :; }
"""


class Disagreement(AssertionError):  # noqa: N818 - it is not the program that is wrong, or not surely
    """A command did not do what the page says."""

    def __init__(self, page: Path, command: Command, printed: str) -> None:
        wanted = "\n".join(command.expected)
        super().__init__(
            f"{page}:{command.line}\n$ {command.text}\n"
            f"--- the page says\n{wanted}\n--- it printed\n{printed}"
        )


class Terminal:
    """A shell that keeps its directory and variables from one command to the next."""

    def __init__(self, directory: Path, page: Path) -> None:
        self.directory = directory
        self._page = page
        self._shell: subprocess.Popen[str] | None = None
        self._staying: list[tuple[subprocess.Popen[bytes], Path]] = []
        ports = {*_USUAL_PORTS.values(), *_OTHER_PORTS}
        self._ports = {str(usual): str(_free_port()) for usual in ports}
        self._environment = _furnish(directory, self._ports)

    def __enter__(self) -> Self:
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._type("exec 2>&1")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        while self._staying:
            self._interrupt()
        assert self._shell is not None
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        self._shell.wait(STOP_SECONDS)
        assert self._shell.stdout is not None
        self._shell.stdout.close()

    def try_all(self, page: Page) -> None:
        """Type every command of the page; `Disagreement` at the first that prints something else."""
        for name, text in page.files.items():
            (self.directory / name).write_text(text, encoding="utf-8")
        for command in page.commands:
            self.try_command(command)

    def try_command(self, command: Command) -> None:
        for usual, port in self._ports.items():
            command = command._replace(text=command.text.replace(usual, port))
        if command.is_interrupt:
            printed = self._interrupt()
            self._compare(command, printed)
        elif _stays(command):
            self._leave_running(command)
        elif _looks(command):
            self._look_until_it_is_so(command)
        else:
            printed, code = self._type(command.text)
            self._compare(command, printed)
            if code and not command.expected:
                raise Disagreement(self._page, command, f"{printed}exit code {code}")

    def _compare(self, command: Command, printed: str) -> None:
        if not is_as_said(command.expected, printed.splitlines()):
            raise Disagreement(self._page, command, printed)

    def _look_until_it_is_so(self, command: Command) -> None:
        for _ in _patiently():
            printed, _code = self._type(command.text)
            if is_as_said(command.expected, printed.splitlines()):
                return
        self._compare(command, printed)

    def _leave_running(self, command: Command) -> None:
        """Start it, and wait until it has said what the page says it does."""
        if not set(command.expected) - {ANY}:
            raise ValueError(f"{self._page}:{command.line}: how do readers know that it is ready?")
        output = self.directory / f".terminal-{len(self._staying)}-{secrets.token_hex(4)}"
        with output.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command.text}"],
                cwd=self.directory,
                env=self._variables(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self._staying.append((process, output))
        for _ in _patiently():
            printed = output.read_text(encoding="utf-8")
            if is_as_said(command.expected, printed.splitlines()) or process.poll() is not None:
                break
        self._compare(command, printed)

    def _interrupt(self) -> str:
        """What the program that was started last says to Ctrl-C."""
        process, output = self._staying.pop()
        before = len(output.read_bytes())
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        return output.read_bytes()[before:].decode()

    def _variables(self) -> dict[str, str]:
        """What was exported meanwhile."""
        printed, _ = self._type("env -0 | tr '\\0\\n' '\\n\\0'")
        pairs = (line.partition("=") for line in printed.splitlines())
        return {name: value.replace("\0", "\n") for name, _, value in pairs if name}

    def _type(self, text: str) -> tuple[str, int]:
        """What a command prints, and how it ends."""
        assert self._shell is not None
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        end = f"end-{secrets.token_hex(8)}"
        # The next command shall find in `$?` what this one left there.
        self._shell.stdin.write(
            f"{text}\n_code=$?; printf '\\n{end} %d\\n' $_code; (exit $_code)\n"
        )
        self._shell.stdin.flush()
        printed: list[str] = []
        for line in self._shell.stdout:
            if line.startswith(end):
                code = int(line.split()[1])
                text = "".join(printed)
                return text.removesuffix("\n"), code
            printed.append(line)
        raise RuntimeError(f"the shell ended: {''.join(printed)}")


def _stays(command: Command) -> bool:
    """Whether it runs until it is stopped. With a mistake it does not."""
    fails = any(line.startswith("error:") for line in command.expected)
    return command.text.startswith(_STAYING) and not command.text.endswith(_AT_ONCE) and not fails


def _looks(command: Command) -> bool:
    """Whether it changes nothing."""
    return re.sub(r" --kubeconfig \S+", "", command.text).startswith(_LOOKING)


def _patiently() -> Iterator[None]:
    """As long as it is worth waiting, at least twice."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    yield
    while time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)
        yield


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _furnish(directory: Path, ports: Mapping[str, str]) -> dict[str, str]:
    """Put into the directory what a reader finds in theirs; the variables that are set there."""
    for name in ("examples", "docs", "deploy", "tests"):
        if (PROJECT / name).exists():
            (directory / name).symlink_to(PROJECT / name)
    scripts = directory / "scripts"
    scripts.mkdir()
    shutil.copy(PROJECT / "scripts" / "up", scripts / "up")
    (scripts / "environment").write_text(_ENVIRONMENT)
    programs = directory / ".bin"
    programs.mkdir()
    real = Path(sys.executable).parent
    allot = programs / "allot"
    cases = "\n".join(
        f'"{name} "*) set -- "$@" --port {ports[str(usual)]} ;;'
        for name, usual in _USUAL_PORTS.items()
    )
    allot.write_text(_ALLOT.format(program=real / "allot", cases=cases))
    allot.chmod(0o755)
    home = directory / ".home"
    home.mkdir()
    return {
        "PATH": f"{programs}:{real}:{os.environ['PATH']}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "COLUMNS": "200",
        "TERM": "dumb",
    }
