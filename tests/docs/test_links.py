"""Links between pages lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.docs.terminal import PROJECT

PAGES = sorted(
    path.relative_to(PROJECT)
    for path in (
        *PROJECT.glob("*.md"),
        *(PROJECT / "docs").rglob("*.md"),
        *(PROJECT / "examples").rglob("*.md"),
        *(PROJECT / "bench").glob("*.md"),
    )
)
_LINK: Final = re.compile(r"(?<!!)\[[^\]]+\]\((?P<target>[^)\s]+)\)")
_HEADING: Final = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)
_CODE: Final = re.compile(r"^\s*```.*?^\s*```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links(page: Path) -> None:
    assert list(_broken(page)) == []


def _broken(page: Path) -> Iterator[str]:
    text = _CODE.sub("", (PROJECT / page).read_text(encoding="utf-8"))
    for found in _LINK.finditer(text):
        target = found["target"]
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (PROJECT / page).parent / path if path else PROJECT / page
        if not file.exists() or (anchor and anchor not in _anchors(file)):
            yield target


def _anchors(file: Path) -> set[str]:
    """As GitHub makes them from headings."""
    titles = _HEADING.findall(_CODE.sub("", file.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
