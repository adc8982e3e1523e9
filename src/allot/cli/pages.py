"""Where the documentation of a command is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from allot.cli.command_list import COMMANDS

_INDEX: Final = "index.md"


def page_reference(command: str = "") -> str:
    """The page about a command, or the index: its path in a checkout, its name in the source distribution otherwise."""
    page = COMMANDS[command].page if command else _INDEX
    directory = Path(__file__).parents[3] / "docs"
    if (directory / page).exists():
        return str(directory / page)
    return f"docs/{page}, in the source distribution"
