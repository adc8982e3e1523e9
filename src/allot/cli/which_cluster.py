"""Which cluster a command talks to: one rule for all commands.

--kubeconfig, KUBECONFIG, the cluster of .allot here if it runs, ~/.kube/config, the service account of a pod
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from allot.cli.completers import complete_contexts
from allot.cli.data_directory import DEFAULT, KUBECONFIG, is_data_directory, occupant
from allot.cli.errors import CommandError

F = TypeVar("F", bound=Callable[..., Any])

_RUNS_HERE: Final = f"; the cluster that runs here is {DEFAULT / KUBECONFIG}"
RULE: Final = f"KUBECONFIG, or {DEFAULT} here if it runs, or ~/.kube/config"


def cluster_options(help_text: str = "The cluster, by its kubeconfig.") -> Callable[[F], F]:
    """`--kubeconfig` and `--context`."""

    def decorate(command: F) -> F:
        command = click.option(
            "--context",
            metavar="NAME",
            shell_complete=complete_contexts,
            help="The context in the kubeconfig.",
        )(command)
        return click.option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(dir_okay=False, path_type=Path),
            help=f"{help_text} Default: {RULE}.",
        )(command)

    return decorate


def chosen_kubeconfig(kubeconfig: Path | None, context: str | None = None) -> Path | None:
    """The kubeconfig to use; None for what kubectl would use: KUBECONFIG, ~/.kube/config, or the pod's own."""
    if kubeconfig is not None:
        if not any(Path(each).exists() for each in str(kubeconfig).split(os.pathsep)):
            message = f"no kubeconfig at {kubeconfig}"
            raise CommandError(message + _start_hint(message))
        return kubeconfig
    if os.environ.get("KUBECONFIG"):
        return None
    own = DEFAULT / KUBECONFIG
    if occupant(DEFAULT) is None or not own.exists():
        return None
    if context is not None and context not in _contexts(own):
        return None
    return own


def _contexts(path: Path) -> list[str]:
    from allot.client.errors import ConfigError
    from allot.client.kubeconfig import context_names

    try:
        return context_names(str(path))
    except ConfigError:
        return []


# --- what to say when it does not answer ---


def cluster_error(
    error: Exception, kubeconfig: Path | None, context: str | None = None
) -> CommandError:
    """The error of a request, with the kubeconfig that was used, and what to do if its cluster is not there."""
    from allot.client.errors import ApiStatusError, ClientError, ConfigError, TransportError

    cause = error if isinstance(error, ClientError) else error.__cause__
    message = " ".join(str(error).split())
    if isinstance(cause, ConfigError):
        return CommandError(message + _start_hint(message))
    if isinstance(cause, TransportError) or (
        isinstance(cause, ApiStatusError) and cause.is_unauthorized
    ):
        return CommandError(f"{message}; {_stale_hint(kubeconfig, context)}")
    return CommandError(message)


def _start_hint(message: str) -> str:
    if not message.startswith("no kubeconfig at"):
        return ""
    if occupant(DEFAULT) is not None:
        return _RUNS_HERE
    if is_data_directory(DEFAULT):
        return f"; the cluster in {DEFAULT} is stopped: `allot up` starts it"
    return "; `allot up` starts a cluster here, --kubeconfig names another one"


def _stale_hint(kubeconfig: Path | None, context: str | None) -> str:
    chosen = chosen_kubeconfig(kubeconfig, context)
    if chosen is not None:
        files = [chosen]
        origin = "--kubeconfig" if kubeconfig is not None else f"{DEFAULT} here"
    else:
        location = os.environ.get("KUBECONFIG", "")
        files = [Path(each) for each in location.split(os.pathsep) if each]
        origin = "KUBECONFIG" if files else "the default"
        files = files or [Path("~/.kube/config")]
    shown = os.pathsep.join(map(str, files))
    return f"the kubeconfig is {shown} ({origin}){_state_of(files[0])}"


def _state_of(kubeconfig: Path) -> str:
    """What is known about the data directory of this kubeconfig, or about that of the current directory."""
    directory = kubeconfig.parent
    if is_data_directory(directory):
        if occupant(directory) is not None:
            return ": its cluster starts or stops; try again"
        is_here = directory.absolute() == DEFAULT.absolute()
        option = "" if is_here else f" --data-dir {directory}"
        return f": its cluster is stopped; start it with `allot up{option}`"
    if occupant(DEFAULT) is not None:
        return _RUNS_HERE
    return "; `allot up` starts a cluster here"
