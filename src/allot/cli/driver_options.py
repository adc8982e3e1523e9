"""Options of simulated nodes about DRA drivers, for `allot up` and `allot nodes`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from allot.cli.errors import CommandError

F = TypeVar("F", bound=Callable[..., Any])


def check_driver_packages(needed_by: str) -> None:
    """`CommandError` if the packages for the sockets of drivers are not installed."""
    try:
        import grpc  # noqa: F401
        from google.protobuf import message  # noqa: F401
    except ImportError as error:
        raise CommandError(
            f"{needed_by} needs the packages grpcio and protobuf: install allot[drivers]"
        ) from error


class DriverOptions(NamedTuple):
    """How nodes treat drivers."""

    plugin_dir: str | None = None
    unregistered_drivers: str = ""
    driver_grace_seconds: float = 30.0

    def check(self) -> None:
        """`CommandError` if the sockets cannot be used."""
        if self.plugin_dir is not None:
            check_driver_packages("--plugin-dir")

    def arguments(self) -> tuple[str, ...]:
        """The same as command line options."""
        given = [f"--driver-grace-seconds={self.driver_grace_seconds}"]
        if self.plugin_dir is not None:
            given.append(f"--plugin-dir={self.plugin_dir}")
        if self.unregistered_drivers:
            given.append(f"--unregistered-drivers={self.unregistered_drivers}")
        return tuple(given)


def driver_options(command: F) -> F:
    """Adds the options. The command gets the fields of `DriverOptions`."""
    for option in (
        click.option(
            "--driver-grace-seconds",
            type=click.FloatRange(min=0),
            default=30.0,
            show_default=True,
            help="How long a registered driver may be gone before its slices are deleted.",
        ),
        click.option(
            "--unregistered-drivers",
            type=click.Choice(["hold", "simulate"]),
            help="Pods with devices of drivers that are neither registered nor part of --hardware: hold them, or run them. "
            "Default: simulate; hold with --plugin-dir.",
        ),
        click.option(
            "--plugin-dir",
            type=click.Path(file_okay=False, path_type=Path),
            help="Let DRA drivers register with nodes, through sockets in DIR/NODE/plugins_registry.",
        ),
    ):
        command = option(command)
    return command


def driver_options_of(
    plugin_dir: Path | None, unregistered_drivers: str | None, driver_grace_seconds: float
) -> DriverOptions:
    """`CommandError` if the sockets cannot be used."""
    directory = None if plugin_dir is None else str(plugin_dir.absolute())
    options = DriverOptions(directory, unregistered_drivers or "", driver_grace_seconds)
    options.check()
    return options
