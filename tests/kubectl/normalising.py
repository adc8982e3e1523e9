"""Output without what differs from run to run: uids, times, ages, addresses, versions of objects, random names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from typing import Final

_NOT_CPU: Final = "".join(
    f"(?<!{re.escape(before)})"
    for before in ("cpu: ", "cpu:  ", "cpu=", 'cpu":"', 'cpu": "', "cpu  ")
)
"""100m is an age of an object, and an amount of CPU."""
_SUBSTITUTIONS: Final = tuple(
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uid>"),
        (r"\beyJ[\w-]+\.[\w-]+\.[\w-]+", "<token>"),
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?[+-]\d{4}| ?Z| UTC)*( UTC)?", "<time>"),
        (r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
        (r"^[EIW]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ([\w.]+):\d+\]", r"<log> \1]"),
        (r"\b(20\d\d)/\d\d/\d\d \d\d:\d\d:\d\d", "<time>"),
        (r"([Rr]esource ?[vV]ersion\"?[:=] *\"?)\d+", r"\1<version>"),
        (r"\bLS0t[A-Za-z0-9+/=]+", "<pem>"),
        (r"(/[\w.-]+)*/tmp/[\w./-]+", "<file>"),
        (r"\b(?!127\.0\.0\.1\b)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", "<ip>"),
        (r"\b127\.0\.0\.1:\d{4,5}\b", "127.0.0.1:<port>"),
        (r"\b(nodePort\"?: |:)3\d{4}\b", r"\1<port>"),
        (r"(NodePort: .*)\b3\d{4}/", r"\1<port>/"),
        (r"(pod-template-hash|controller-revision-hash)([\"=: ]+)[\w-]+", r"\1\2<hash>"),
        (r"\b(web)-[a-z0-9]{8,10}-[a-z0-9]{5}\b", r"\1-<hash>-<random>"),
        (r"\b(web)-[a-z0-9]{8,10}\b", r"\1-<hash>"),
        (r"\b(agent|db)-[a-z0-9]{8,10}\b", r"\1-<hash>"),
        (r"\b(agent|old|once|random|tpl|p-devices|debugger)-[a-z0-9]{5}\b", r"\1-<random>"),
        (r"\bnode-debugger-n1-[a-z0-9]{5}\b", "node-debugger-n1-<random>"),
        (r"0x[0-9a-f]+\b", "<pointer>"),
        (r"\b(walked)-[a-z0-9]{10}\b", r"\1-<hash>"),
        (r"(Expected resource version to be \d+, was )\d+", r"\1<version>"),
        (r"\bhttps://kubernetes\.default\.svc(\.cluster\.local)?(?=[\s\"]|$)", "<issuer>"),
        (r"\ballot-admin\b", "admin"),
        (r"^(UID +| +\"?uid\"?: \"?)admin\"?,?\n", ""),
        (r" \(x\d+ over (\d+[smhd])+\)", ""),
        (_NOT_CPU + r"\b(\d+y)?(\d+d)?(\d+h)?(\d+m)?\d+(\.\d+)?(ms|[smhd])\b", "<age>"),
        (r"(?<=\S) {2,}", "  "),
        (r"[ \t]+$", ""),
    )
)


def normalised(text: str, names: Mapping[str, str]) -> str:
    for found, replacement in names.items():
        text = text.replace(found, replacement)
    for pattern, replacement in _SUBSTITUTIONS:
        text = pattern.sub(replacement, text)
    return _in_order(_drain_warnings.sub(_sorted_notes, text))


_EVICTING: Final = "evicting pod "
_drain_warnings: Final = re.compile(r"(?<=^Warning: )(?:ignoring|deleting) .*; .*$", re.MULTILINE)


def _sorted_notes(found: re.Match[str]) -> str:
    """`kubectl drain` collects notes in a map."""
    return "; ".join(sorted(found[0].split("; ")))


def _in_order(text: str) -> str:
    """Adjacent lines about objects with random names are in the order of these names, evictions in any order."""
    return "\n".join(
        line
        for is_random, lines in groupby(text.split("\n"), _has_no_order)
        for line in (sorted(lines) if is_random else lines)
    )


def _has_no_order(line: str) -> bool:
    return "<random>" in line or line.startswith(_EVICTING)


def without_descriptions(text: str) -> str:
    """What `kubectl explain` prints of the fields and their types; descriptions are each server's own."""
    kept, section = [], ""
    for line in text.splitlines():
        if line and not line.startswith(" "):
            section = line
        if section.startswith("DESCRIPTION"):
            continue
        is_text = line.startswith(" ") and "\t" not in line and "enum:" not in line
        if not (section.startswith("FIELDS") and is_text):
            kept.append(line)
    return "\n".join(line for line in kept if line)
