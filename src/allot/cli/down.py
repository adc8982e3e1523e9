"""`allot down`: stops the cluster that `allot up` started."""

from __future__ import annotations

from pathlib import Path

import click

from allot.cli.data_directory import data_dir_option, occupant, stop_occupant
from allot.cli.errors import EXIT_OK

STOP_SECONDS = 30.0


@click.command()
@data_dir_option
def down(data_dir: Path) -> int:
    """Stop the cluster of the data directory. Its state stays."""
    pid = occupant(data_dir)
    if pid is None:
        click.echo(f"no cluster runs in {data_dir}")
        return EXIT_OK
    stop_occupant(data_dir, pid, STOP_SECONDS)
    click.echo(f"stopped; the state is in {data_dir}")
    return EXIT_OK
