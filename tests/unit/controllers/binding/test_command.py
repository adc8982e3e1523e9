"""`allot binding-controller`: what it says to wrong options. That it works is for the integration tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: str) -> tuple[int, str]:
    program = [sys.executable, "-c", "from allot.cli.main import run; run()", "binding-controller"]
    done = subprocess.run(
        [*program, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param([], "Missing option '--driver'", id="no-driver"),
        pytest.param(
            ["--driver=d", "--script=dance"], "'dance': expected ready, hang", id="script"
        ),
        pytest.param(["--driver=d", "--lease=x"], "write NAMESPACE/NAME", id="lease"),
        pytest.param(["--driver=d", "--attacher=nope:Nope"], "No module named 'nope'", id="module"),
        pytest.param(["--driver=d", "--attacher=json:X"], "attacher json:X: Attr", id="attribute"),
        pytest.param(
            ["--driver=d", "--attacher=json:JSONDecoder"], "not a subclass of Attacher", id="class"
        ),
        pytest.param(["--driver=d", "--kubeconfig=nope"], "nope", id="kubeconfig"),
    ],
)
def test_mistakes_get_one_line(arguments: list[str], message: str) -> None:
    code, errors = run(*arguments)

    assert code == 2
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert message in errors


def test_unreadable_script_file(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("behaviours: [{hnag: true}]")

    code, errors = run("--driver=d", f"--script-file={script}")

    assert code == 2
    assert "unknown field `hnag`" in errors
