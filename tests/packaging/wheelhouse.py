"""Wheels from which the tests install allot in a fresh environment, without a network.

`ALLOT_WHEELHOUSE` names a directory with wheels that were downloaded before:

    pip download --dest WHEELHOUSE --constraint constraints.txt . pytest

Without it, wheels are packed from the packages that are installed in the environment of the tests, which are the same
files.
"""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest
from packaging.utils import canonicalize_name

from tests.packaging.requirements import (
    PROJECT,
    installed_files,
    plain_requirements,
    with_dependencies,
)

VARIABLE: Final = "ALLOT_WHEELHOUSE"
_NOT_IN_WHEELS: Final = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def find_wheels(directory: Path, requirements: Iterable[str] = ()) -> Path:
    """A directory with wheels of the plain requirements and these. Skips the test where there are no packages."""
    if downloaded := os.environ.get(VARIABLE):
        if not any(Path(downloaded).glob("*.whl")):
            pytest.skip(f"{VARIABLE}={downloaded} has no wheels: nothing was installed")
        return Path(downloaded)
    try:
        packages = with_dependencies([*plain_requirements(), *requirements])
    except PackageNotFoundError as error:
        pytest.skip(f"{error.name} is not installed, and {VARIABLE} is not set: nothing to install")
    for package in packages.values():
        pack_wheel(package, directory)
    return directory


def build_distributions(directory: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution of this checkout."""
    if find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: nothing was built; install allot[dev]")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(directory)]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    [wheel], [archive] = directory.glob("*.whl"), directory.glob("*.tar.gz")
    return wheel, archive


def pack_wheel(package: Distribution, directory: Path) -> Path:
    """A wheel of an installed package. pip writes its commands again when it installs the wheel."""
    name = canonicalize_name(package.name).replace("-", "_")
    path = directory / f"{name}-{package.version}-{_tags(package)}.whl"
    record: list[str] = []
    with zipfile.ZipFile(path, "w") as wheel:
        metadata = ""
        for inside, file in installed_files(package):
            folder, _, base = inside.partition("/")
            if folder.endswith(".dist-info"):
                metadata = folder
                if base in _NOT_IN_WHEELS:
                    continue
            content = file.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            record.append(f"{inside},sha256={digest.decode()},{len(content)}\n")
            wheel.writestr(inside, content)
        record.append(f"{metadata}/RECORD,,\n")
        wheel.writestr(f"{metadata}/RECORD", "".join(record))
    return path


def _tags(package: Distribution) -> str:
    lines = (package.read_text("WHEEL") or "").splitlines()
    tags = [line.removeprefix("Tag: ").strip().split("-") for line in lines if "Tag: " in line]
    parts = zip(*tags, strict=True)
    return "-".join(".".join(dict.fromkeys(part)) for part in parts)
