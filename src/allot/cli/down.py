"""`allot down`: stops the cluster that `allot up` started."""

from __future__ import annotations

from pathlib import Path

import click

from allot.cli.data_directory import data_dir_option, occupant, stop_occupant
from allot.cli.errors import EXIT_OK
from allot.cli.last_start import read_last_start, where_state_is

STOP_SECONDS = 30.0


@click.command()
@data_dir_option
def down(data_dir: Path) -> int:
    """Stop the cluster of the data directory. Its state stays, unless it was started with --storage memory."""
    pid = occupant(data_dir)
    if pid is None:
        click.echo(f"no cluster runs in {data_dir}")
        return EXIT_OK
    stop_occupant(data_dir, pid, STOP_SECONDS)
    click.echo(_farewell(data_dir))
    return EXIT_OK


def _farewell(data_dir: Path) -> str:
    last = read_last_start(data_dir)
    place = where_state_is(last.storage if last else "sqlite", data_dir)
    return f"stopped; the state is in {place}" if place else "stopped; its objects were in memory"
