"""`kubectl allot …` is `allot …`, where allot's programs are on the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(sys.executable).parent

pytestmark = [
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on the PATH"),
    pytest.mark.skipif(
        not (PROGRAMS / "kubectl-allot").exists(), reason="allot is not installed beside python"
    ),
]


def kubectl(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", "HOME": str(home)}
    return subprocess.run(
        ["kubectl", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_plugin_is_the_program(tmp_path: Path) -> None:
    done = kubectl("allot", "version", home=tmp_path)

    assert done.returncode == 0
    assert done.stdout.startswith("allot 0.")


def test_plugin_passes_exit_codes_on(tmp_path: Path) -> None:
    done = kubectl("allot", "lint", "nope.yaml", home=tmp_path)

    assert done.returncode == 2
    assert "nope.yaml: No such file or directory" in done.stderr


def test_kubectl_lists_the_plugin(tmp_path: Path) -> None:
    done = kubectl("plugin", "list", "--name-only", home=tmp_path)

    assert "kubectl-allot" in done.stdout.splitlines()
