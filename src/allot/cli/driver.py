"""`allot driver`: a project for a new DRA driver."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click

from allot.cli.errors import EXIT_OK, CommandError

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
MAX_NAME: Final = 63


@click.group()
def driver() -> None:
    """Create DRA drivers."""


@driver.command("init")
@click.argument("name")
@click.option(
    "--directory", type=click.Path(path_type=Path), help="Default: the first part of NAME, here."
)
def init(name: str, directory: Path | None) -> int:
    """Create a project for the DRA driver NAME, such as gpu.example.com.

    It has a driver that runs, a test that needs neither hardware nor a cluster, and a DaemonSet.
    """
    from allot.driver.template import project_files

    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise CommandError(
            f"{name}: the name of a driver is a DNS subdomain with a dot, of at most {MAX_NAME} characters, such as gpu.example.com"
        )
    root = directory or Path(name.partition(".")[0])
    files = project_files(name)
    existing = [path for path in files if (root / path).exists()]
    if existing:
        raise CommandError(f"{root / existing[0]} exists already; choose another --directory")
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
        click.echo(f"created {target}")
    click.echo(f"next: cd {root} && cat README.md")
    return EXIT_OK
