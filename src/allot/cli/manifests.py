"""Manifests that a command line names: files, directories, and `-` for standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from allot.cli.errors import CommandError
from allot.lint.manifests import Manifest, Unreadable
from allot.public.errors import ManifestError
from allot.public.manifest_files import SourceFile, readable
from allot.public.manifest_files import read_files as read_named_files

__all__ = [
    "CLONE_KIND",
    "Manifest",
    "SourceFile",
    "Unreadable",
    "read_all",
    "read_files",
    "read_manifests",
]

STDIN: Final = "<stdin>"
CLONE_KIND: Final = "ClusterClone"
"""The item of a clone that says how the cluster is configured."""


def read_manifests(sources: Iterable[str]) -> Iterator[Manifest | Unreadable]:
    """All objects in files and directories, with the items of lists one by one."""
    for file in read_files(sources):
        yield from file.manifests()


def read_all(sources: Sequence[str]) -> list[Manifest]:
    """The objects in files and directories, in order; `CommandError` for what cannot be read."""
    try:
        return list(readable(read_manifests(sources)))
    except ManifestError as error:
        raise CommandError(str(error)) from None


def read_files(sources: Iterable[str]) -> Iterator[SourceFile]:
    """Each file once; `CommandError` for what cannot be read."""
    seen: set[Path] = set()
    try:
        for source in sources:
            if source == "-":
                yield SourceFile(STDIN, sys.stdin.buffer.read())
            else:
                yield from read_named_files([source], seen)
    except ManifestError as error:
        raise CommandError(str(error)) from None
