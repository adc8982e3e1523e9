"""The options of commands that read a cluster, or files such as kubectl prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from allot.cli.at_option import at_option
from allot.cli.which_cluster import cluster_options

F = TypeVar("F", bound=Callable[..., Any])

OF_A_CLUSTER: Final = "those of the cluster; seeds for files"
"""The default of `--rules` for these commands."""


def source_options(does: str) -> Callable[[F], F]:
    """`-f`, `--kubeconfig`, `--context` and `--at`; the function gets `sources`, `kubeconfig`, `context` and `at`."""

    def decorate(command: F) -> F:
        return click.option(
            "-f",
            "--filename",
            "sources",
            multiple=True,
            type=click.Path(allow_dash=True),
            metavar="FILE",
            help=f"{does} what is in files, directories, or - for standard input, instead of a cluster.",
        )(cluster_options()(at_option(command)))

    return decorate


def scheduler_config_option(command: F) -> F:
    """`--scheduler-config`, of the cluster that a question is about."""
    return click.option(
        "--scheduler-config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The KubeSchedulerConfiguration of the scheduler. Default: Kubernetes' default.",
    )(command)
