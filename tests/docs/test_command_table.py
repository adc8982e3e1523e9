"""docs/cli.md lists every command, and the page to which the help of a command points is about it."""

from __future__ import annotations

from itertools import chain

import pytest

from allot.cli.command_list import GROUPS, ListedCommand
from tests.docs.terminal import PROJECT

COMMANDS = list(chain.from_iterable(GROUPS.values()))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_command_is_documented(command: ListedCommand) -> None:
    table = [
        line
        for line in (PROJECT / "docs" / "cli.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `allot ")
    ]

    assert any(f"`allot {command.name}" in line for line in table)
    assert f"allot {command.name}" in (PROJECT / "docs" / command.page).read_text(encoding="utf-8")
