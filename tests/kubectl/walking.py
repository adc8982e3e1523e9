"""Invocations made from kubectl's own help: every subcommand with each of its options, one at a time."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tests.kubectl.invocations import Invocation

Help = Callable[[Sequence[str]], str]
"""What `kubectl ARGUMENTS` prints."""

_COMMAND: Final = re.compile(r"^  ([a-z][a-z0-9-]*) {2,}\S", re.MULTILINE)
_OPTION: Final = re.compile(
    r"^    (?:-(\w), )?--([a-z0-9-]+)(?:=(.*))?:\n\t(.*(?:\n\t.*)*)", re.MULTILINE
)
_CHOICES: Final = re.compile(r"One of: \(?([a-z|, -]+)\)?")


class Option(NamedTuple):
    """An option as the help describes it."""

    name: str
    default: str
    description: str

    def values(self, given: Mapping[str, Sequence[str]]) -> Sequence[str]:
        """What to try: the words that the help names, the other truth value, or what is given for it."""
        if self.name in given:
            return given[self.name]
        if self.default in ("true", "false"):
            return ["false" if self.default == "true" else "true"]
        found = _CHOICES.search(self.description.replace("|", ", "))
        return [word.strip() for word in found[1].split(",")] if found else ()


def subcommands(text: str) -> list[str]:
    """The commands that a help page lists."""
    listed = text.split("\nUsage:", maxsplit=1)[0].split("\nOptions:", maxsplit=1)[0]
    parts = re.split(
        r"^(?:\w[\w ()-]*Commands[\w ()]*|Available Commands):$", listed, flags=re.MULTILINE
    )
    return [
        name
        for part in parts[1:]
        for name in _COMMAND.findall(part.split("Subcommands provided by")[0])
    ]


def options(text: str) -> list[Option]:
    found = text.partition("\nOptions:\n")[2] or text
    return [
        Option(name, (default or "").strip("'"), description)
        for _, name, default, description in _OPTION.findall(found)
    ]


def commands(run: Help, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every command and its help page, in the order of the pages."""
    text = run([*above, "--help"])
    if above:
        yield above, text
    for name in subcommands(text):
        yield from commands(run, (*above, name))


def walk(
    run: Help,
    arguments: Mapping[str, str],
    values: Mapping[str, Mapping[str, Sequence[str]]],
) -> Iterator[Invocation]:
    """`arguments` makes a command sensible; a command without stays alone. `values` are by command, "" for all."""
    for option in options(run(["options"])):
        for value in option.values(values["options"]):
            yield Invocation(("get", "pods", f"--{option.name}={value}"))
    for path, text in commands(run):
        name = " ".join(path)
        base = shlex.split(arguments.get(name, ""))
        yield Invocation((*path, *base))
        if name not in arguments:
            continue
        given = {**values[""], **values.get(name, {})}
        for option in options(text):
            kept = [word for word in base if not word.startswith(f"--{option.name}=")]
            for value in option.values(given):
                yield Invocation((*path, *kept, f"--{option.name}={value}"))
