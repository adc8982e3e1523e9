"""`allot reset`: removes a cluster's state."""

from __future__ import annotations

from pathlib import Path

import click

from allot.cli.data_directory import data_dir_option, occupant, remove_contents
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.merged_kubeconfig import CONTEXT, unmerge_kubeconfig


@click.command()
@data_dir_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def reset(data_dir: Path, yes: bool) -> int:
    """Remove everything that `allot up` keeps in the data directory: all objects, and the credentials."""
    pid = occupant(data_dir)
    if pid is not None:
        raise CommandError(
            f"a cluster (pid {pid}) runs in {data_dir}: stop it with `allot down` first"
        )
    if not data_dir.is_dir():
        click.echo(f"{data_dir} does not exist")
        return EXIT_OK
    if not yes:
        click.confirm(f"Remove all state in {data_dir}?", abort=True)
    try:
        merged = unmerge_kubeconfig(data_dir)
        found = remove_contents(data_dir)
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}") from error
    if merged is not None:
        click.echo(f"the context {CONTEXT} is removed from {merged}")
    click.echo(f"{data_dir} is empty now" if found else f"no files of allot in {data_dir}")
    return EXIT_OK
