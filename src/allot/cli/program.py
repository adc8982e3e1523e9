"""The `allot` program: its commands, its help, and how it ends."""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module
from typing import Any

import click

from allot._version import VERSION
from allot.cli.command_list import COMMANDS, GROUPS
from allot.cli.errors import (
    EXIT_CODES,
    EXIT_FINDINGS,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    CommandError,
)
from allot.cli.pages import page_reference

PROGRAM = "allot"
_VERSION_LINE = f"allot {VERSION}, resource.k8s.io as of Kubernetes 1.38"
_SPACING = 2
_OPTIONS_APART = frozenset({"status", "explain", "lint", "cel", "allocate", "validate"})
"""Commands whose work takes long to import: their options are in `commands`."""


class CommandGroup(click.Group):
    """Imports a command when it is called, because its modules take time to load."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.commands or cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        name = cmd_name.replace("-", "_")
        module = f"allot.cli.commands.{name}" if cmd_name in _OPTIONS_APART else f"allot.cli.{name}"
        command: click.Command = getattr(import_module(module), name)
        command.epilog = command.epilog or f"Documentation: {page_reference(cmd_name)}"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=COMMANDS, ctx=ctx
            ) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                rows = [(each.name.ljust(width), each.summary) for each in commands]
                formatter.write_dl(rows, col_max=width, col_spacing=_SPACING)

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[click.shell_completion.CompletionItem[str]]:
        """Commands, without importing them; options as usual."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(each.name, help=each.summary)
            for each in COMMANDS.values()
            if each.name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


def _print_version(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(_VERSION_LINE)
        ctx.exit()


@click.group(
    PROGRAM,
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"""\
`allot help COMMAND` documents a command. Documentation: {page_reference()}

{EXIT_CODES}""",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def allot() -> None:
    """Kubernetes Dynamic Resource Allocation (DRA), without a cluster.

    Drivers publish devices, users claim them; allot decides as Kubernetes does, and explains.
    """


@allot.command()
def version() -> None:
    """Print the versions of allot and of the API it speaks."""
    click.echo(_VERSION_LINE)


@allot.command("help")
@click.argument("command", nargs=-1, metavar="[COMMAND]...")
def show_help(command: tuple[str, ...]) -> None:
    """Show the help of a command, or of the program."""
    context = click.Context(allot, info_name=PROGRAM, **allot.context_settings)
    for name in command:
        group = context.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"{context.command_path} has no subcommands")
        _, found, _ = group.resolve_command(context, [name])
        assert found is not None
        context = found.context_class(found, context, info_name=name, **found.context_settings)
    click.echo(context.get_help())


@allot.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script for your shell.

    It completes commands, options and files, and pods, claims, nodes and device classes of the cluster.

    \b
    bash:  source <(allot completion bash)
    zsh:   source <(allot completion zsh)
    fish:  allot completion fish | source
    """
    from allot.cli.completion import completion_script

    click.echo(completion_script(allot, shell))


def run_program() -> int:
    """Run a command; the exit code."""
    try:
        result: Any = allot.main(prog_name=PROGRAM, standalone_mode=False)
        return result if isinstance(result, int) else EXIT_OK
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "")
        return EXIT_OK
    except click.ClickException as error:
        return _fail(error.format_message().replace("\n", " "), EXIT_USAGE)
    except CommandError as error:
        return _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe: keep Python from reporting that at exit.
        _abandon_output()
        return EXIT_FINDINGS
    except OSError as error:  # such as a full disk
        _abandon_output()
        return _fail(f"cannot write the output: {error.strerror or error}", EXIT_USAGE)


def _abandon_output() -> None:
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    from rich.markup import escape

    from allot.cli.console import PrintableConsole

    PrintableConsole(stderr=True, soft_wrap=True).print(f"[bold red]error:[/] {escape(message)}")
    return code
