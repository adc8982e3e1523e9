"""Every command in the documentation does what the page says. `pages.py` has the rules for writing them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.pages import blocks, read_page
from tests.docs.terminal import PROJECT, Terminal

GENERATED = Path("docs/cli-reference.md")
PAGES = sorted(
    path.relative_to(PROJECT)
    for path in (
        PROJECT / "README.md",
        *(PROJECT / "docs").glob("*.md"),
        *(PROJECT / "docs" / "guides").glob("*.md"),
        *(PROJECT / "examples").rglob("README.md"),
    )
    if path.relative_to(PROJECT) != GENERATED
)
NEEDED = ("kubectl", "curl", "jq", "sqlite3")
"""What readers may have and we do not install."""
IN_THE_GATE = {Path("README.md")}
"""Those that are quick and matter most. The others are slow."""


def _parameter(page: Path) -> object:
    marks = [] if page in IN_THE_GATE else [pytest.mark.slow]
    return pytest.param(page, marks=marks, id=str(page))


@pytest.mark.parametrize(
    "page", [_parameter(page) for page in PAGES if read_page(PROJECT / page).commands]
)
def test_commands(page: Path, tmp_path: Path) -> None:
    read = read_page(PROJECT / page)
    for program in NEEDED:
        used = any(program in command.text for command in read.commands)
        if used and shutil.which(program) is None:
            pytest.skip(f"{program} is not on the PATH: the commands in {page} were not tried")
    with Terminal(tmp_path, page) as terminal:
        terminal.try_all(read)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_no_command_hides(page: Path) -> None:
    """What looks like a command is written so that it is run, or says why not."""
    hidden = [
        f"{page}:{block.line + at}: {line}"
        for block in blocks((PROJECT / page).read_text(encoding="utf-8"))
        if block.is_run and block.language in ("sh", "bash", "shell", "")
        for at, line in enumerate(block.lines)
        if line.startswith(("kubectl ", "allot ", "./scripts/"))
        and not any(each.startswith("$ ") for each in block.lines)
    ]

    assert hidden == []
