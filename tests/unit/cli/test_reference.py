"""The reference of all commands is what the program says."""

from __future__ import annotations

from pathlib import Path

from allot.cli.main import allot
from allot.cli.reference import reference

PAGE = Path(__file__).parents[3] / "docs" / "cli-reference.md"


def test_the_page_is_up_to_date() -> None:
    stale = PAGE.read_text(encoding="utf-8") != reference()

    assert not stale, (
        "a command has changed: python -m allot.cli.reference > docs/cli-reference.md, and commit it"
    )


def test_every_command_and_option_is_in_it() -> None:
    text = reference()
    names = allot.list_commands(allot.make_context("allot", ["version"]))

    missing = [name for name in names if f"## allot {name}\n" not in text]

    assert missing == []
    assert "| `--data-dir DIRECTORY` |" in text
