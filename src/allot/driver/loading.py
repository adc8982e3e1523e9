"""Loads hardware descriptions: files, or profiles included in allot."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from allot.api.similar_names import did_you_mean, similar_names
from allot.driver.errors import HardwareError
from allot.driver.hardware import Hardware
from allot.driver.reading import read_hardware

_REFERENCE: Final = re.compile(r"(?P<where>.+?)(?:=(?P<count>\d{1,9}))?", re.DOTALL).fullmatch
_TYPO: Final = 0.75
"""The set of profiles is closed, so that the most similar one is meant."""
_PROFILE_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, where PyYAML has it: ten times as fast. PyYAML's own explains better what is wrong with a user's file."""
_PROFILES: Final = files("allot.driver.profiles")


def profiles() -> list[str]:
    """The names of the included descriptions."""
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in _PROFILES.iterdir()
        if entry.name.endswith(".yaml")
    )


def load_hardware(reference: str, directory: Path | None = None, *, suffix: str = "") -> Hardware:
    """The hardware of `FILE` or `PROFILE`; `=N` sets the number of nodes.

    A file is looked for in `directory` first, then in the working directory. `suffix` is added to the name that
    nodes are named after.
    """
    found = _REFERENCE(reference)
    if found is None:
        raise HardwareError("--hardware", "", f"expected FILE[=N] or one of {_choice()}")
    where = found["where"]
    count = int(found["count"]) if found["count"] else None
    text, source, name, loader = _read(where, directory)
    return read_hardware(_document(text, source, loader), source, f"{name}{suffix}", count)


class _Found(NamedTuple):
    text: str
    source: str
    name: str
    loader: type[yaml.SafeLoader] = yaml.SafeLoader


def _read(where: str, directory: Path | None) -> _Found:
    if where in profiles():
        text = (_PROFILES / f"{where}.yaml").read_text(encoding="utf-8")
        return _Found(text, where, where, _PROFILE_LOADER)
    path = Path(where)
    if directory is not None and (directory / path).exists():
        path = directory / path
    try:
        return _Found(path.read_text(encoding="utf-8"), where, path.stem)
    except FileNotFoundError:
        raise HardwareError(where, "", no_such_profile(where)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise HardwareError(where, "", getattr(error, "strerror", None) or str(error)) from None


def no_such_profile(name: str) -> str:
    """What to say about a name, or a path that was made of one, that is neither a file nor a profile."""
    similar = similar_names(Path(name).name, profiles(), min_similarity=_TYPO)
    return f"no such file or profile{did_you_mean(similar) or f'; available profiles: {_choice()}'}"


def _choice() -> str:
    return ", ".join(profiles())


def _document(text: str, source: str, loader: type[yaml.SafeLoader]) -> Any:
    try:
        return yaml.load(text, loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise HardwareError(source, line, error.problem or "not YAML") from None
    except yaml.YAMLError as error:
        raise HardwareError(source, "", str(error)) from None
