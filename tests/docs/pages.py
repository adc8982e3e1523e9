"""The commands in a page of the documentation, and what the page says they print.

```                         a block without a language whose lines begin with `$` is a terminal:
$ kubectl get pods          a command, perhaps continued with `\\` at the end of a line,
NAME   READY                and what it prints
…                           any number of lines
pod/a…  Running             any text within a line
^C                          the running program is interrupted
```

```yaml                     a block whose first line is a comment with nothing but a file's name
# claim.yaml                is a file, which is there from the beginning
```

<!-- not run: REASON -->    before a block: it is not run, and why
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PROMPT = "$ "
INTERRUPT = "^C"
_FENCE = re.compile(r"^(?P<indent>\s*)```(?P<language>\S*)")
_FILE = re.compile(r"^(?:#|//) (?P<name>[\w.-]+\.(?:yaml|json|py))$")
_NOT_RUN = re.compile(r"^\s*<!-- not run: .+ -->$")


class Command(NamedTuple):
    """A line that a user types, or `^C`."""

    line: int
    text: str
    expected: tuple[str, ...]

    @property
    def is_interrupt(self) -> bool:
        return self.text == INTERRUPT


class Block(NamedTuple):
    """A fenced block, and the number of its first line in the page."""

    line: int
    language: str
    lines: tuple[str, ...]
    is_run: bool


@dataclass(frozen=True)
class Page:
    """What a page asks to be tried."""

    commands: tuple[Command, ...]
    files: dict[str, str]


def read_page(path: Path) -> Page:
    return parse_page(path.read_text(encoding="utf-8"))


def parse_page(text: str) -> Page:
    commands: list[Command] = []
    files: dict[str, str] = {}
    for block in blocks(text):
        if not block.is_run:
            continue
        if block.language in ("", "console"):
            commands.extend(_commands(block))
        elif block.lines and (found := _FILE.match(block.lines[0])):
            is_json = found["name"].endswith("json")  # which has no comments
            files[found["name"]] = "\n".join(block.lines[is_json:]) + "\n"
    return Page(tuple(commands), files)


def blocks(text: str) -> Iterator[Block]:
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        if opening is None:
            at += 1
            continue
        first = at + 1
        end = next((n for n in range(first, len(lines)) if lines[n].strip() == "```"), len(lines))
        indent = len(opening["indent"])
        content = tuple(line[indent:] for line in lines[first:end])
        is_run = not (at > 0 and _NOT_RUN.match(lines[at - 1]))
        yield Block(first + 1, opening["language"], content, is_run)
        at = end + 1


def _commands(block: Block) -> Iterator[Command]:
    typed: list[str] = []
    number = 0
    expected: list[str] = []
    for at, line in enumerate(block.lines, block.line):
        if typed and typed[-1].endswith("\\"):
            typed.append(line)
            continue
        is_command = line.startswith(PROMPT)
        if is_command or line == INTERRUPT:
            if typed:
                yield Command(number, "\n".join(typed), tuple(expected))
            typed, number, expected = [line.removeprefix(PROMPT)], at, []
        elif typed:
            expected.append(line)
    if typed:
        yield Command(number, "\n".join(typed), tuple(expected))
