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
