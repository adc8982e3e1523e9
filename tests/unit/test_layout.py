"""Tests are where one looks for them: `tests/unit` has the directories of `src/allot`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

UNIT: Final = Path(__file__).parent
PACKAGES: Final = UNIT.parents[1] / "src" / "allot"

WITHOUT_PACKAGE: Final = {
    "lint/data": "the schema of SARIF, which reports are validated with",
    "storage/data": "files of earlier versions, which migration reads",
}


def test_directories_of_unit_tests_are_packages() -> None:
    directories = {
        path.parent.relative_to(UNIT).as_posix()
        for path in UNIT.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packages = {
        path.parent.relative_to(PACKAGES).as_posix() for path in PACKAGES.rglob("__init__.py")
    }

    assert directories - packages == set(WITHOUT_PACKAGE)


def test_test_files_have_tests() -> None:
    """A module without tests is not named `test_*`, so that a search for tests finds only tests."""
    empty = [
        path.relative_to(UNIT).as_posix()
        for path in UNIT.rglob("test_*.py")
        if "def test_" not in path.read_text(encoding="utf-8")
    ]

    assert empty == []
