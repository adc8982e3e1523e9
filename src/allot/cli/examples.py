"""Where the example manifests are."""

from __future__ import annotations

from pathlib import Path

import allot
from allot.cli.errors import CommandError


def examples_directory() -> Path:
    """`examples/`: in the package where allot is installed, beside `src/` in a checkout."""
    package = Path(allot.__file__).parent
    for directory in (package / "examples", package.parents[1] / "examples"):
        if directory.is_dir():
            return directory
    raise CommandError("the examples are missing from this installation of allot; install it again")
