"""The `allot` program: its commands, and how it ends."""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module
from typing import ClassVar

import click
from click.shell_completion import get_completion_class

from allot._version import VERSION
from allot.cli.errors import (
    EXIT_CODES,
    EXIT_FINDINGS,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    CommandError,
)


class _Commands(click.Group):
    """Imports a command when it is called, because its modules take time to load."""

    _MODULES: ClassVar = (
        "allocate",
        "apiserver",
        "binding-controller",
        "cel",
        "controller-manager",
        "demo",
        "devices",
        "down",
        "explain",
        "fit",
        "kubeconfig",
        "lint",
        "nodes",
        "reset",
        "scheduler",
        "status",
        "storage",
        "up",
        "validate",
    )
    """Commands, each in the module of its name (with _ for -) in this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted((*self.commands, *self._MODULES))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._MODULES:
            return super().get_command(ctx, cmd_name)
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"allot.cli.{name}"), name)
        return command


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
def allot() -> None:
    """Kubernetes Dynamic Resource Allocation (DRA), without a cluster.

    Drivers publish devices, users claim them; allot decides as Kubernetes does, and explains.
    """


@allot.command()
def version() -> None:
    """Print the versions of allot and of the API it speaks."""
    click.echo(f"allot {VERSION}, resource.k8s.io as of Kubernetes 1.38")


@allot.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script for your shell.

    \b
    bash:  source <(allot completion bash)
    zsh:   source <(allot completion zsh)
    fish:  allot completion fish | source
    """
    cls = get_completion_class(shell)
    assert cls is not None
    click.echo(cls(allot, {}, "allot", "_ALLOT_COMPLETE").source())


def run() -> None:
    """Entry point: a failure that is not a bug becomes one line and an exit code."""
    sys.exit(_run())


def _run() -> int:
    try:
        result = allot.main(prog_name="allot", standalone_mode=False)
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
    from rich.console import Console
    from rich.markup import escape

    Console(stderr=True, highlight=False, soft_wrap=True, emoji=False).print(
        f"[bold red]error:[/] {escape(message)}"
    )
    return code
