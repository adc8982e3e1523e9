"""The pre-commit hooks of this checkout, run by pre-commit in an environment that it installs itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from tests.packaging.requirements import PROJECT
from tests.packaging.wheelhouse import find_wheels

BUILD_REQUIREMENTS: Final = ("hatchling", "editables")
LIMIT_SECONDS: Final = 600
GOOD = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
"""
BAD = GOOD.replace("deviceClassName: gpu.example.com", "deviceClassName: gpu.example.org")


class Repository:
    """A Git repository of a user of the hooks. pre-commit installs allot from wheels, without a network."""

    def __init__(self, directory: Path, wheels: Path) -> None:
        self.directory = directory / "repository"
        self.directory.mkdir()
        home = directory / "home"
        home.mkdir()
        self._variables = os.environ | {
            "HOME": str(home),
            "PRE_COMMIT_HOME": str(directory / "pre-commit"),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(wheels),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
        }
        (home / "gitconfig").write_text("[safe]\n\tdirectory = *\n", encoding="utf-8")
        self._run("git", "init", "--quiet")

    def put(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text, encoding="utf-8")
        self._run("git", "add", name)

    def run_hook(self, hook: str) -> tuple[int, str]:
        """The exit code of pre-commit, and what it prints."""
        ended = self._run(
            sys.executable, "-m", "pre_commit", "try-repo", str(PROJECT), hook, "--all-files",
            "--verbose", is_checked=False,
        )  # fmt: skip
        return ended.returncode, ended.stdout

    def _run(self, *command: str, is_checked: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.directory,
            env=self._variables,
            check=is_checked,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_SECONDS,
        )


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    if find_spec("pre_commit") is None:
        pytest.skip("pre-commit is not installed: its hooks were not run; pip install pre-commit")
    if shutil.which("git") is None or not (PROJECT / ".git").exists():
        pytest.skip("pre-commit installs hooks from Git repositories, and this is not a checkout")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    return Repository(tmp_path, find_wheels(wheels, BUILD_REQUIREMENTS))


@pytest.mark.slow
def test_the_hook_checks_manifests(repository: Repository) -> None:
    repository.put("claim.yaml", GOOD)
    repository.put("notes.txt", "not a manifest")
    code, output = repository.run_hook("allot-lint")
    assert (code, "Passed" in output) == (0, True), output

    repository.put("claim.yaml", BAD)
    code, output = repository.run_hook("allot-lint")
    assert (code, "Failed" in output) == (1, True), output
    assert "gpu.example.org" in output
    assert "available: gpu.example.com" in output
