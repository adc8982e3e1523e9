"""The options of commands that are about some of the devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from allot.cli.completers import (
    complete_classes,
    complete_drivers,
    complete_nodes,
    complete_pools,
)

F = TypeVar("F", bound=Callable[..., Any])


def device_options(command: F) -> F:
    """`--node`, `--class`, `--pool` and `--driver`; the function gets `node`, `class_name`, `pool` and `driver`."""
    options = (
        click.option("--node", shell_complete=complete_nodes, help="Only devices on this node."),
        click.option(
            "--class",
            "class_name",
            metavar="NAME",
            shell_complete=complete_classes,
            help="Only devices that this DeviceClass selects.",
        ),
        click.option(
            "--pool", shell_complete=complete_pools, help="Only devices of the pool of this name."
        ),
        click.option(
            "--driver", shell_complete=complete_drivers, help="Only devices of this driver."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command
