"""The wheel and the source distribution have everything that a user or a contributor needs."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import allot
from tests.packaging.requirements import PROJECT
from tests.packaging.wheelhouse import build_distributions


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build_distributions(tmp_path_factory.mktemp("dist"))


def _tracked(*paths: str) -> set[str]:
    """Files in the repository, or without a repository, below the directories."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *paths], cwd=PROJECT, capture_output=True, check=False
    )
    names = set(listed.stdout.decode().split("\0")) - {""}
    return {name for name in names if (PROJECT / name).is_file()}


def _metadata(wheel: zipfile.ZipFile) -> Message:
    [name] = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


def test_wheel_is_complete(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[0]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}

    sources = {name.removeprefix("src/") for name in _tracked("src")}
    examples = {f"allot/{name}" for name in _tracked("examples")}
    assert {"allot/py.typed", "allot/driver/profiles/gpu-server.yaml"} <= names
    assert "allot/examples/4816-prioritized-list/story-1.yaml" in names
    assert sources | examples <= names
    assert [name for name in names if "__pycache__" in name or not name.startswith("allot/")] == []


def test_wheel_describes_itself(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[0]) as wheel:
        metadata = _metadata(wheel)
        names = wheel.namelist()

    assert metadata["Version"] == allot.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert any(name.endswith("licenses/LICENSE") for name in names)
    plain = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert not [each for each in plain if each.startswith(("kubernetes", "pytest"))]


def test_source_distribution_is_complete(distributions: tuple[Path, Path]) -> None:
    with tarfile.open(distributions[1]) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}

    left_out = {".gitignore", ".pre-commit-hooks.yaml"}
    tracked = {name for name in _tracked(".") if not name.startswith(".ci/")} - left_out
    assert tracked <= names
    assert not [name for name in names if "__pycache__" in name]
