"""Expressions in manifests: where in the file a problem is, and what published devices they ask for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

from allot.api.decoding import DecodeError
from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.scheme import UnknownKindError, decode_object
from allot.api.slices import ResourceSlice
from allot.apiserver.yaml_documents import Place
from allot.cel import CelCompileError, Origin, compile_derived, compile_selector
from allot.cel.device import split_name
from allot.cli.manifests import Manifest, Unreadable
from allot.features import FeatureGates

MAX_LINES_SEARCHED: Final = 500


class ExpressionIssue(NamedTuple):
    """A problem in an expression: line and column from 1."""

    line: int
    column: int
    message: str


_ISSUE: Final = re.compile(r"^ERROR: <input>:(\d+):(\d+): (.*)$", re.MULTILINE)


def expression_issues(detail: str) -> list[ExpressionIssue]:
    """The problems that a field error about an expression tells of."""
    if not detail.startswith("compilation failed: "):
        return []
    return [
        ExpressionIssue(int(line), max(int(column), 1), message)
        for line, column, message in _ISSUE.findall(detail.removeprefix("compilation failed: "))
    ]


def point_at(
    manifest: Manifest, path: str, expression: str, issue: ExpressionIssue
) -> tuple[Place, str]:
    """Where in the file the problem is, and the line there with a caret under it.

    Where the file writes the expression differently (escaped or folded), the expression's own line
    is shown, and the place is where it begins.
    """
    place = manifest.locate(path)
    expression_lines = expression.split("\n")
    shown = expression_lines[issue.line - 1] if issue.line <= len(expression_lines) else ""
    first = place.line - 1
    for number, line in enumerate(manifest.lines[first : first + MAX_LINES_SEARCHED], place.line):
        start = line.find(shown) if shown.strip() else -1
        if start >= 0:
            column = start + issue.column
            return Place(number, column), _snippet(line, column)
    return place, _snippet(shown, issue.column)


def _snippet(line: str, column: int) -> str:
    return f"    {line}\n    {' ' * (column - 1)}^"


# --- what devices have ---


class PublishedNames(NamedTuple):
    """Attributes and capacities of all devices, as (domain, identifier)."""

    attributes: frozenset[tuple[str, str]]
    capacity: frozenset[tuple[str, str]]


def slices_among(
    manifests: Iterable[Manifest | Unreadable], now: datetime
) -> Iterator[ResourceSlice]:
    """The ResourceSlices, of any version; what cannot be decoded is left out."""
    for manifest in manifests:
        if isinstance(manifest, Manifest) and manifest.kind == "ResourceSlice":
            gvk = GroupVersionKind(*GroupVersion.parse(manifest.api_version), manifest.kind)
            try:
                yield decode_object(manifest.body, gvk, now)
            except (DecodeError, UnknownKindError):
                continue


def published_names(manifests: Iterable[Manifest | Unreadable], now: datetime) -> PublishedNames:
    attributes, capacity = set(), set()
    for slice_ in slices_among(manifests, now):
        for device in slice_.spec.devices or ():
            attributes |= {split_name(name, slice_.spec.driver) for name in device.attributes}
            capacity |= {split_name(name, slice_.spec.driver) for name in device.capacity}
    return PublishedNames(frozenset(attributes), frozenset(capacity))


def unpublished_reads(
    manifest: Manifest, published: PublishedNames, gates: FeatureGates
) -> Iterator[tuple[str, str]]:
    """Field and advice for each expression that reads what no published device has."""
    if not published.attributes and not published.capacity:
        return
    for path, expression, is_derived in _expressions(manifest.data, ""):
        compile_ = compile_derived if is_derived else compile_selector
        try:
            program = compile_(expression, Origin.NEW, gates)
        except CelCompileError:
            continue  # reported already
        for place in program.reads:
            match place:
                case ("attributes" | "capacity" as kind, domain, identifier) if identifier:
                    known = getattr(published, kind)
                    if (domain, identifier) not in known:
                        yield path, _advice(kind, domain, identifier, known)


_NOUNS: Final = {"attributes": "attribute", "capacity": "capacity"}


def _advice(kind: str, domain: str, identifier: str, known: frozenset[tuple[str, str]]) -> str:
    alike = difflib.get_close_matches(
        identifier, [name for place, name in known if place == domain]
    )
    elsewhere = sorted(place for place, name in known if name == identifier)
    hint = ""
    if alike:
        hint = f'; did you mean "{domain}/{alike[0]}"?'
    elif elsewhere:
        hint = f'; did you mean "{elsewhere[0]}/{identifier}"?'
    return f'no device in these files has the {_NOUNS[kind]} "{domain}/{identifier}"{hint}'


def _expressions(value: Any, path: str) -> Iterator[tuple[str, str, bool]]:
    """Path, text, and whether it derives an attribute, of every expression in an object."""
    if isinstance(value, dict):
        for key, inner in value.items():
            inner_path = f"{path}.{key}" if path else str(key)
            if key == "expression" and isinstance(inner, str):
                yield inner_path, inner, "derivedAttributes[" in path
            else:
                yield from _expressions(inner, inner_path)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _expressions(inner, f"{path}[{index}]")
