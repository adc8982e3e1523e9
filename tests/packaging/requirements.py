"""The packages that a plain install of allot brings, as they are installed in the environment of the tests."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT: Final = Path(__file__).parents[2]


def project_table() -> dict[str, Any]:
    """`[project]` of pyproject.toml."""
    text = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    table: dict[str, Any] = tomllib.loads(text)["project"]
    return table


def plain_requirements() -> list[str]:
    requirements: list[str] = project_table()["dependencies"]
    return requirements


def with_dependencies(requirements: Iterable[str]) -> dict[str, Distribution]:
    """The distributions that satisfy the requirements, with those that they require, by name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    wanted = [(Requirement(each), "") for each in requirements]
    while wanted:
        requirement, of_extra = wanted.pop()
        name = canonicalize_name(requirement.name)
        if not _applies(requirement, of_extra):
            continue
        found[name] = distribution(name)
        for extra in ("", *requirement.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                wanted += ((Requirement(each), extra) for each in found[name].requires or ())
    return found


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def installed_files(package: Distribution) -> Iterator[tuple[str, Path]]:
    """The package's files in site-packages, without compiled modules: name there, and path."""
    for file in package.files or ():
        if ".." not in file.parts and "__pycache__" not in file.parts:
            yield file.as_posix(), Path(str(file.locate()))


def mebibytes_on_disk(paths: Iterable[Path]) -> float:
    """The blocks that files and directories take, as `du` counts them."""
    return sum(path.lstat().st_blocks for path in paths) * 512 / 2**20


def largest(sizes: Mapping[str, float]) -> dict[str, float]:
    """The five largest packages, the largest first, rounded."""
    ordered = sorted(sizes.items(), key=lambda item: item[1], reverse=True)
    return {name: round(size, 1) for name, size in ordered[:5]}
