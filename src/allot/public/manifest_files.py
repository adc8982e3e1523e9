"""Manifests from files, directories and patterns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from glob import glob, has_magic
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple

from allot.lint.manifests import Manifest, Unreadable, parse_manifests
from allot.public.errors import ManifestError

SUFFIXES: Final = (".yaml", ".yml", ".json")


class SourceFile(NamedTuple):
    """A file that was read. `scope` is its directory, relative to the one that was searched."""

    name: str
    content: bytes
    scope: str = ""

    def manifests(self) -> Iterator[Manifest | Unreadable]:
        return parse_manifests(self.name, self.content, self.scope)


def read_files(
    sources: Iterable[str | PathLike[str]], seen: set[Path] | None = None
) -> Iterator[SourceFile]:
    """Each file once; `ManifestError` if one cannot be read.

    A source is a file, a directory (all manifests below it, except hidden ones), or a pattern such as `deploy/*.yaml`.
    Files in `seen` are skipped, and files that are read are added to it.
    """
    seen = set() if seen is None else seen
    for source in sources:
        for root in _roots(source):
            for path in _files(root):
                resolved = path.resolve()
                if resolved in seen:
                    continue
                seen.add(resolved)
                scope = path.parent.relative_to(root).as_posix() if path != root else "."
                try:
                    yield SourceFile(str(path), path.read_bytes(), "" if scope == "." else scope)
                except OSError as error:
                    raise ManifestError(str(path), error.strerror or str(error)) from None


def readable(found: Iterable[Manifest | Unreadable]) -> Iterator[Manifest]:
    """The manifests; `ManifestError` for the first document that is not an object."""
    for each in found:
        if isinstance(each, Unreadable):
            raise ManifestError(each.source, each.problem, each.line)
        yield each


def _roots(source: str | PathLike[str]) -> list[Path]:
    path = Path(source)
    if not has_magic(str(path)) or path.exists():
        return [path]
    found = sorted(map(Path, glob(str(path), recursive=True)))  # noqa: PTH207 - may be absolute
    if not found:
        raise ManifestError(str(source), "no file matches this pattern")
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(
        file
        for file in path.rglob("*")
        if file.suffix in SUFFIXES and not _is_hidden(file.relative_to(path)) and file.is_file()
    )
    if not files:
        raise ManifestError(str(path), f"no {', '.join(SUFFIXES)} files in this directory")
    return files


def _is_hidden(path: Path) -> bool:
    """Directories such as .git, .github and .allot have files of programs, which are no manifests."""
    return any(part.startswith(".") for part in path.parts)
