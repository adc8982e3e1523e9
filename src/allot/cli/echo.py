"""Lines for people, with control characters of objects' names and messages shown instead of sent to the terminal."""

from __future__ import annotations

import click

from allot.api.printable_text import printable_lines


def echo_text(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text that has names or messages of objects."""
    click.echo(printable_lines(text), err=err, nl=nl)
