"""Completion scripts for shells, and the completion of `kubectl allot`."""

from __future__ import annotations

import sys
from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

PROGRAMS: Final = ("allot", "kubectl-allot")
VARIABLE: Final = "_ALLOT_COMPLETE"
_NO_FILES, _FILES = 4, 0
"""Directives of cobra: complete no files; complete files if there is nothing else."""


def completion_script(group: click.Group, shell: str) -> str:
    """The script for both names of the program."""
    cls = get_completion_class(shell)
    assert cls is not None
    return "\n".join(cls(group, {}, program, VARIABLE).source() for program in PROGRAMS)


def complete_for_kubectl() -> None:
    """`kubectl_complete-allot`: kubectl runs it to complete `kubectl allot …`.

    The arguments are the words so far, the last one incomplete. The answer is a line per completion, with its
    description after a tab, and a line with a directive.
    """
    from allot.cli.program import PROGRAM, allot

    *words, incomplete = sys.argv[1:] or [""]
    directive = _NO_FILES
    for item in ShellComplete(allot, {}, PROGRAM, VARIABLE).get_completions(words, incomplete):
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
        else:
            directive = _FILES
    click.echo(f":{directive}")
