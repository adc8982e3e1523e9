"""Tables and documents of commands that answer questions: `-o table|json|yaml`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeVar

import click
import msgspec
import yaml
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from allot.api.decoding import to_builtin
from allot.api.printable_text import printable
from allot.cli.console import PrintableConsole, printable_text

F = TypeVar("F", bound=Callable[..., Any])

UNLIMITED_WIDTH: Final = 10_000
_DIMMED: Final = "dim"


class Column(NamedTuple):
    """A heading, the text of a row, and how it is shown."""

    heading: str
    text: Callable[[Any], str | Text]
    is_number: bool = False
    keeps_whole: bool = False
    """Whether its words are never broken: names to be copied."""


def output_option(command: F) -> F:
    """`-o`; the function gets `output`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json", "yaml"]),
        default="table",
        show_default=True,
    )(command)


def output_options(command: F) -> F:
    """`-o` and `--width`; the function gets `output` and `width`."""
    command = click.option(
        "--width",
        type=click.IntRange(min=40),
        metavar="COLUMNS",
        help="Wrap text to so many columns. Default: those of the terminal; not at all without one.",
    )(command)
    return output_option(command)


def console_for(width: int | None) -> PrintableConsole:
    """Without a terminal and a width lines are not wrapped: another program reads them."""
    if width is None and not sys.stdout.isatty():
        width = UNLIMITED_WIDTH
    return PrintableConsole(width=width)


def print_blocks(blocks: Iterable[RenderableType], width: int | None) -> None:
    """Print paragraphs and tables, without trailing spaces. Leading line breaks of a paragraph are blank lines."""
    console = console_for(width)
    for block in blocks:
        shown = _paragraph(block) if isinstance(block, Text) else block
        for line in console.lines(shown):
            click.echo(line)


def _paragraph(text: Text) -> Text:
    blank_lines = len(text.plain) - len(text.plain.lstrip("\n"))
    before, paragraph = text[:blank_lines], text[blank_lines:]
    return before + printable_text(paragraph, is_line=True)


def table(columns: Sequence[Column], rows: Iterable[Any]) -> Table:
    """Columns without any value are left out."""
    cells = [[cell_text(column.text(row)) for column in columns] for row in rows]
    shown = [
        number
        for number in range(len(columns))
        if number == 0 or any(row[number].plain for row in cells)
    ]
    has_headings = any(columns[number].heading for number in shown)
    found = Table(box=None, pad_edge=False, show_header=has_headings)
    for number in shown:
        column = columns[number]
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        whole = column.is_number or column.keeps_whole
        found.add_column(column.heading, justify=justify, overflow="fold", no_wrap=whole)
    for row in cells:
        found.add_row(*(row[number] for number in shown))
    return found


def notes(texts: Iterable[str]) -> list[RenderableType]:
    """Notes below an answer."""
    return [Text(printable(f"note: {text}"), _DIMMED) for text in texts]


def cell_text(value: str | Text) -> Text:
    """The text of a table's cell, as wide as it is shown."""
    if isinstance(value, str):
        return Text(printable(value))
    return printable_text(value, is_line=True)


def print_document(value: Any, output: str) -> None:
    """The answer as JSON or YAML, with the same fields."""
    encoded = msgspec.json.encode(value, enc_hook=to_builtin)
    if output == "json":
        click.echo(msgspec.json.format(encoded, indent=2).decode())
    else:
        plain = msgspec.json.decode(encoded)
        click.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), nl=False)
