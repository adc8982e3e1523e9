"""The reference of all commands, written from the program itself: `python -m allot.cli.reference > docs/cli-reference.md`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from allot.cli.main import allot

HEAD = """\
# Command line reference

Written by `python -m allot.cli.reference`; a test keeps it true. [cli.md](cli.md) says what the commands are good for.
"""


def reference() -> str:
    """All commands in the order of their names, as Markdown."""
    context = click.Context(allot, info_name="allot")
    parts = [HEAD]
    for name in sorted(allot.list_commands(context)):
        command = allot.get_command(context, name)
        assert command is not None
        own = click.Context(command, context, info_name=name)
        parts.append("\n".join(_section(own)))
        if isinstance(command, click.Group):
            for below, each in sorted(command.commands.items()):
                parts.append("\n".join(_section(click.Context(each, own, info_name=below))))
    return "\n".join(parts)


def _section(context: click.Context) -> Iterator[str]:
    command = context.command
    yield f"## {context.command_path}\n"
    yield f"{_text(command)}\n"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```\n{context.command_path} {usage}\n```\n"
    rows = [row for option in command.params if (row := _row(option, context))]
    if rows:
        yield "| option | what it does |\n| --- | --- |"
        yield from rows
        yield ""


def _text(command: click.Command) -> str:
    """The help; what must keep its lines is shown as it is."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(
        "```\n" + paragraph.removeprefix("\b\n") + "\n```"
        if paragraph.startswith("\b")
        else paragraph.replace("\n", " ")
        for paragraph in paragraphs
    )


def _row(option: click.Parameter, context: click.Context) -> str:
    record = option.get_help_record(context)
    if record is None:
        return ""
    names, text = (part.replace("|", "\\|").replace("\n", " ") for part in record)
    return f"| `{names}` | {text} |"


if __name__ == "__main__":
    click.echo(reference(), nl=False)
