"""Whether a program printed what a page says, apart from what is different each time.

Spaces between columns, ages, times, ports, addresses, identifiers and generated ends of names do not count. `…` in a page stands
for any text in a line; alone on a line, for any number of lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

ANY: Final = "…"

_RANDOM: Final = r"[bcdfghjklmnpqrstvwxz2456789]"  # what Kubernetes makes generated names of
_CHANGING: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\x1b\[[0-9;]*m", ""),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "<time>"),
        (r"127\.0\.0\.1:\d+", "<address>"),
        (r"\b10\.\d+\.\d+\.\d+\b", "<ip>"),
        (r"\bpid \d+", "pid <number>"),
        (r"\b\d+\.\d+ ?s\b", "<seconds>"),
        (rf"-{_RANDOM}{{8,10}}-{_RANDOM}{{5}}\b", "-<hash>-<random>"),
        (rf"-{_RANDOM}{{8,10}}\b", "-<hash>"),
        (rf"-{_RANDOM}{{5}}\b", "-<random>"),
        (r"(?<![\w.-])(?:\d+[dhms])+(?![\w.-])", "<age>"),
        (r"resourceVersion: \S+", "resourceVersion: <number>"),
        (r"\s+", " "),
    )
)


def is_as_said(expected: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether the lines that were printed are those that the page has."""
    wanted = [normal(line) for line in _without_edges(expected)]
    return _matches(wanted, [normal(line) for line in _without_edges(printed)])


def normal(line: str) -> str:
    """The line without what changes from one run to the next."""
    for pattern, replacement in _CHANGING:
        line = pattern.sub(replacement, line)
    return line.strip()


def _without_edges(lines: Sequence[str]) -> list[str]:
    return "\n".join(lines).strip("\n").splitlines()


def _matches(wanted: Sequence[str], printed: Sequence[str]) -> bool:
    if not wanted:
        return not printed
    if wanted[0] == ANY:
        return any(_matches(wanted[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and _line(wanted[0], printed[0]) and _matches(wanted[1:], printed[1:])


def _line(wanted: str, printed: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in wanted.split(ANY))
    return re.fullmatch(pattern, printed) is not None
