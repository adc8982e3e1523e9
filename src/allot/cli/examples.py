"""The directory of the example manifests."""

from __future__ import annotations

from pathlib import Path

from allot.cli.errors import CommandError


def examples_directory() -> Path:
    """`examples/`: in the package where allot is installed, next to `src/` in a checkout."""
    package = Path(__file__).parents[1]
    for directory in (package / "examples", package.parents[1] / "examples"):
        if directory.is_dir():
            return directory
    raise CommandError("no examples in this installation of allot: reinstall it")
