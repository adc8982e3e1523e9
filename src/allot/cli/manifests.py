"""Manifests from files, directories and standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from allot.cli.errors import CommandError
from allot.lint.manifests import Manifest, Unreadable, parse_manifests

__all__ = ["Manifest", "SourceFile", "Unreadable", "read_files", "read_manifests"]

SUFFIXES: Final = (".yaml", ".yml", ".json")
STDIN: Final = "<stdin>"


class SourceFile(NamedTuple):
    """A file that was read. `scope` is its directory below the one that was searched."""

    name: str
    content: bytes
    scope: str = ""

    def manifests(self) -> Iterator[Manifest | Unreadable]:
        return parse_manifests(self.name, self.content, self.scope)


def read_manifests(sources: Iterable[str]) -> Iterator[Manifest | Unreadable]:
    """All objects in files and directories (`-`: standard input), lists taken apart."""
    for file in read_files(sources):
        yield from file.manifests()


def read_files(sources: Iterable[str]) -> Iterator[SourceFile]:
    """Each file once; `CommandError` for what cannot be read."""
    seen: set[Path] = set()
    for source in sources:
        if source == "-":
            yield SourceFile(STDIN, sys.stdin.buffer.read())
            continue
        root = Path(source)
        for path in _files(root):
            resolved = path.resolve()
            if resolved in seen:
                continue
            seen.add(resolved)
            scope = path.parent.relative_to(root).as_posix() if path != root else "."
            try:
                yield SourceFile(str(path), path.read_bytes(), "" if scope == "." else scope)
            except OSError as error:
                raise CommandError(f"{path}: {error.strerror or error}") from None


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not files:
        raise CommandError(f"{path}: no {', '.join(SUFFIXES)} files in this directory")
    return files
