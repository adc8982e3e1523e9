"""A program in a terminal that tests can read: a window of tmux."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

import allot

MAX_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.1


class TmuxSession:
    """One window. Keys go in, the screen is compared."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def _run(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    def press(self, *keys: str) -> None:
        """Keys as tmux names them: `Enter`, `Escape`, `C-c`, `/`."""
        for key in keys:
            self._run("send-keys", key)
            time.sleep(POLL_SECONDS)  # an escape and what follows are two keys, not one

    def resize(self, width: int, height: int) -> None:
        self._run("resize-window", "-x", str(width), "-y", str(height))

    @property
    def lines(self) -> list[str]:
        """The screen, without spaces at the ends of lines."""
        return [line.rstrip() for line in self._run("capture-pane", "-p").split("\n")]

    @property
    def screen(self) -> str:
        return "\n".join(self.lines)

    @property
    def styled_screen(self) -> str:
        """The screen with escape sequences."""
        return self._run("capture-pane", "-p", "-e")

    def has_whole_screen(self) -> bool:
        """Whether a program shows the alternate screen."""
        return self._run("display-message", "-p", "#{alternate_on}").strip() == "1"

    def until(self, text: str, *, gone: bool = False) -> None:
        """Wait until a string is on the screen, or is no longer."""
        description = f"{text!r} gone" if gone else repr(text)
        self.until_lines(lambda lines: (text in "\n".join(lines)) is not gone, description)

    def until_lines(self, is_met: Callable[[list[str]], bool], description: str) -> None:
        """Wait until all that is on the screen is as described: programs draw it in parts."""
        deadline = time.monotonic() + MAX_SECONDS
        while not is_met(lines := self.lines):
            if time.monotonic() > deadline:
                raise AssertionError("\n".join((f"not {description}:", *lines)))
            time.sleep(POLL_SECONDS)

    def terminate(self) -> None:
        """Send SIGTERM to the program."""
        shell = self._run("display-message", "-p", "#{pane_pid}").strip()
        (program,) = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        os.kill(int(program), signal.SIGTERM)


@contextmanager
def tmux_session(
    directory: Path,
    command: Sequence[str],
    *,
    size: tuple[int, int] = (80, 24),
    environment: Mapping[str, str] | None = None,
) -> Iterator[TmuxSession]:
    """A shell in a window that has run the command. Skips the test where tmux is not installed."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed: the screen of `allot top` was not compared")
    session = TmuxSession(directory / "tmux")
    width, height = size
    code = {"PYTHONPATH": str(Path(allot.__file__).parents[1])}
    variables = [f"{name}={value}" for name, value in (code | dict(environment or {})).items()]
    line = shlex.join(["env", *variables, *command])
    session._run(
        "new-session", "-d", "-x", str(width), "-y", str(height), "-c", str(directory),
        f"{line}; echo ended with $?; exec cat",
    )  # fmt: skip
    try:
        yield session
    finally:
        session._run("kill-server")
