"""Pages for contributors: the files they name exist, and lines stay readable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.docs.terminal import PROJECT

PAGES: Final = ("CONTRIBUTING.md", "ARCHITECTURE.md", "docs/glossary.md")
MAX_LINE: Final = 120
_CODE: Final = re.compile(r"^\s*```.*?^\s*```", re.MULTILINE | re.DOTALL)
_NAMED: Final = re.compile(r"`([\w.-]+(?:/[\w.-]+)*(?:\.(?:py|md|yaml|toml)|/))`")


def _named_files(page: str) -> Iterator[str]:
    text = _CODE.sub("", (PROJECT / page).read_text(encoding="utf-8"))
    yield from _NAMED.findall(text)


def _exists(name: str) -> bool:
    return any((root / name).exists() for root in (PROJECT, PROJECT / "src" / "allot"))


@pytest.mark.parametrize("page", PAGES)
def test_named_files_exist(page: str) -> None:
    names = list(_named_files(page))

    assert len(names) > 20
    assert [name for name in names if not _exists(name)] == []


@pytest.mark.parametrize("page", [Path("ARCHITECTURE.md")], ids=str)
def test_lines_are_short(page: Path) -> None:
    lines = (PROJECT / page).read_text(encoding="utf-8").splitlines()

    assert [number for number, line in enumerate(lines, 1) if len(line) > MAX_LINE] == []


def _parts_of(package: Path) -> Iterator[str]:
    """The packages and public modules directly in a package, as pages name them."""
    for part in sorted(package.iterdir()):
        name = part.relative_to(PROJECT / "src" / "allot").as_posix()
        if part.is_dir() and (part / "__init__.py").exists():
            yield f"{name}/"
        elif part.suffix == ".py" and not part.name.startswith("_"):
            yield name


@pytest.mark.parametrize("package", [".", "apiserver", "scheduler"])
def test_architecture_names_all_packages(package: str) -> None:
    page = (PROJECT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    parts = list(_parts_of(PROJECT / "src" / "allot" / package))
    if package != ".":
        parts = [part for part in parts if part.endswith("/")]

    assert len(parts) > 4
    assert [part for part in parts if f"`{part}`" not in page] == []
