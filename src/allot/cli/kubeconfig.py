"""`allot kubeconfig`: where kubectl finds the cluster."""

from __future__ import annotations

from pathlib import Path

import click

from allot.cli.data_directory import KUBECONFIG, data_dir_option
from allot.cli.errors import EXIT_OK, CommandError


@click.command()
@data_dir_option
@click.option("--show", is_flag=True, help="Print what is in it, not where it is.")
def kubeconfig(data_dir: Path, show: bool) -> int:
    """Print where the kubeconfig of the cluster is.

    \b
    export KUBECONFIG=$(allot kubeconfig)
    """
    path = data_dir / KUBECONFIG
    if not path.exists():
        raise CommandError(f"{path}: no such file; `allot up` writes it")
    try:
        click.echo(path.read_text(encoding="utf-8") if show else path.absolute(), nl=not show)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    return EXIT_OK
