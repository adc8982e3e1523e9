"""`scripts/environment` makes .venv with the faster of `python3` and the system's Python, unless told which one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]


def a_python(directory: Path, name: str, seconds: float) -> Path:
    """A Python that takes so long for the loop that is timed."""
    path = directory / name
    path.write_text(
        f'#!/bin/sh\n[ "$1" = -I ] && {{ echo {seconds}; exit; }}\nexec {sys.executable} "$@"\n'
    )
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("seconds", "other_seconds", "is_faster", "ratio"),
    [
        pytest.param(0.3, 0.2, True, "1.5", id="faster"),
        pytest.param(0.2, 0.2, False, "1.0", id="alike"),
        pytest.param(0.2, 0.19, False, "1.1", id="a-little-faster"),
        pytest.param(0.2, 0.3, False, "0.7", id="slower"),
    ],
)
def test_pythons_are_compared(
    tmp_path: Path, seconds: float, other_seconds: float, is_faster: bool, ratio: str
) -> None:
    pythons = a_python(tmp_path, "one", seconds), a_python(tmp_path, "other", other_seconds)

    answer = subprocess.run(
        [sys.executable, ROOT / "scripts/compare_pythons", *pythons],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (is_faster, ratio) == (answer.returncode == 0, answer.stdout.strip())


def test_the_loop_that_is_timed_runs() -> None:
    answer = subprocess.run(
        [sys.executable, ROOT / "scripts/compare_pythons", sys.executable, sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )

    assert float(answer.stdout) > 0
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("python_seconds", "system_seconds", "environment", "expected"),
    [
        pytest.param(0.3, 0.2, {}, "system", id="the-system's-is-faster"),
        pytest.param(0.2, 0.2, {}, "python3", id="alike"),
        pytest.param(0.3, 0.2, {"VIRTUAL_ENV": "/some"}, "python3", id="activated"),
        pytest.param(0.3, 0.2, {"CONDA_PREFIX": "/some"}, "python3", id="activated-conda"),
        pytest.param(0.3, 0.2, {"PYTHON": "/other"}, "/other", id="told"),
        pytest.param(0.3, None, {}, "python3", id="no-system-python"),
    ],
)
def test_python_is_chosen(
    tmp_path: Path,
    python_seconds: float,
    system_seconds: float | None,
    environment: dict[str, str],
    expected: str,
) -> None:
    (tmp_path / "scripts").mkdir()
    for name in ("environment", "compare_pythons"):
        (tmp_path / "scripts" / name).write_bytes((ROOT / "scripts" / name).read_bytes())
    programs = tmp_path / "programs"
    programs.mkdir()
    a_python(programs, "python3", python_seconds)
    system = tmp_path / "system"
    if system_seconds is not None:
        a_python(tmp_path, "system", system_seconds)
    known = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX")
    }

    answer = subprocess.run(
        ["bash", "-c", f"source scripts/environment; SYSTEM_PYTHON={system}; find_python; echo $python"],
        cwd=tmp_path,
        env={**known, "PATH": f"{programs}:{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip

    assert answer.stdout.strip() == (str(system) if expected == "system" else expected)
