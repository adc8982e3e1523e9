"""Ctrl-C at any moment leaves one clean line and no traceback."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from tests.acceptance.server_process import PROGRAM

MOMENTS = 10
INTERRUPTIBLE = Path(__file__).parents[2] / "scripts" / "interruptible"


def interrupted(directory: Path, seconds: float, *arguments: str) -> tuple[int, str, str]:
    """Start a command, and press Ctrl-C after so many seconds: exit code, standard output, standard error."""
    environment = {**os.environ, "HOME": str(directory)}
    environment.pop("KUBECONFIG", None)
    with subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        output, errors = process.communicate(timeout=60)
    return process.returncode, output, errors


def starting_python() -> float:
    """How long the interpreter takes before it runs anything of ours; until then Ctrl-C is its own affair."""
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", "import allot.cli.main"], check=True)
    return time.monotonic() - start


def assert_clean(errors: str, context: object) -> None:
    assert "Traceback" not in errors, (context, errors)
    assert len(errors.splitlines()) <= 1, (context, errors)


def test_while_importing(tmp_path: Path) -> None:
    """The command sends the signal to itself in the middle of an import."""
    program = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'allot.features':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from allot.cli.main import run; run()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "status", "-f", "x.yaml"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_up_at_ten_moments(tmp_path: Path) -> None:
    random, early = Random(17), 2 * starting_python()  # noqa: S311 - moments, not secrets
    for number in range(MOMENTS):
        seconds = early + random.uniform(0.0, 3.0)
        code, _, errors = interrupted(tmp_path, seconds, "up", "--port", "0")

        assert_clean(errors, (number, seconds))
        assert errors in ("interrupted\n", "stopping ...\n")
        assert code == (130 if errors == "interrupted\n" else 0)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_demo_at_ten_moments(tmp_path: Path) -> None:
    random, early = Random(18), 2 * starting_python()  # noqa: S311
    up = [*PROGRAM, "up", "--detach", "--port", "0"]
    subprocess.run(up, cwd=tmp_path, check=True, capture_output=True)
    try:
        for number in range(MOMENTS):
            seconds = early + random.uniform(0.0, 6.0)
            code, output, errors = interrupted(tmp_path, seconds, "demo", "--fast")

            assert_clean(errors, (number, seconds))
            assert code == 130
            if not errors:
                last = output.rstrip().splitlines()[-1]
                assert last == "interrupted; cleaning up the namespace allot-demo ..."
    finally:
        subprocess.run([*PROGRAM, "down"], cwd=tmp_path, check=True, capture_output=True)


CLEANING_UP = """
import time
try:
    print("begun", flush=True)
    time.sleep(600)
finally:
    print("a long report")
    open("cleaned-up", "w").close()
"""


def in_a_terminal(directory: Path, source: str, awaited: bytes, typed: bytes) -> tuple[int, str]:
    """Run a program as `./scripts/test` runs pytest, and type when it has printed something: exit code, the screen."""
    command = [sys.executable, str(INTERRUPTIBLE), sys.executable, "-c", source]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(directory)
        os.execv(command[0], command)  # noqa: S606
    screen = b""
    with suppress(OSError):  # at the end
        while piece := os.read(terminal, 1024):
            screen += piece
            if awaited in screen and typed:
                os.write(terminal, typed)
                typed = b""
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), screen.decode().replace("\r", "")


def test_tests_that_are_interrupted_clean_up_and_leave_one_line(tmp_path: Path) -> None:
    code, screen = in_a_terminal(tmp_path, CLEANING_UP, b"\n", b"\x03")

    assert (code, screen) == (130, "begun\n^Cinterrupted\n")
    assert (tmp_path / "cleaned-up").exists()


def test_tests_in_a_terminal_end_with_their_own_code(tmp_path: Path) -> None:
    code, screen = in_a_terminal(tmp_path, "print('done'); raise SystemExit(3)", b"", b"")

    assert (code, screen) == (3, "done\n")
