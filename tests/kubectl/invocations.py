"""A kubectl invocation, what is played around it, and the lists of both."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

DATA: Final = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Invocation:
    """One run of kubectl. Its command line is its name."""

    arguments: tuple[str, ...]
    stdin: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    until: str = ""
    """Not recorded: repeated until this is part of its output. It waits for controllers."""

    @property
    def name(self) -> str:
        set_before = "".join(
            f"{key}={shlex.quote(value)} " for key, value in self.environment.items()
        )
        return (
            set_before + shlex.join(self.arguments) + (f" <<< {self.stdin}" if self.stdin else "")
        )


@dataclass(frozen=True)
class Section:
    """Invocations in order, in one namespace."""

    name: str
    namespace: str
    invocations: tuple[Invocation, ...]


def read_sections(path: Path) -> list[Section]:
    return [
        Section(found["section"], found["section"], tuple(map(_invocation, found["invocations"])))
        for found in yaml.safe_load(path.read_text())
    ]


def _invocation(found: Any) -> Invocation:
    if isinstance(found, str):
        return Invocation(tuple(shlex.split(found)))
    return Invocation(
        tuple(shlex.split(found["run"])),
        found.get("stdin", ""),
        found.get("environment", {}),
        found.get("until", ""),
    )
