"""Manifests: YAML or JSON, one object or many, with the position of every value.

Reading files is left to the commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from allot.apiserver.yaml_documents import YamlDocument, YamlError, YamlLocation, parse_documents

MAX_OBJECT_SIZE: Final = 3 * 1024 * 1024
"""The API server's limit for one request. A list of objects may be larger."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object and where it came from."""

    source: str
    data: dict[str, Any]
    body: bytes
    place: YamlLocation
    lines: Sequence[str] = ()  # of the whole file
    duplicates: tuple[tuple[str, YamlLocation], ...] = ()
    scope: str = ""
    """The directory, relative to the one that was searched; empty for files named on the command line."""

    @property
    def api_version(self) -> str:
        return str(self.data.get("apiVersion") or "")

    @property
    def kind(self) -> str:
        return str(self.data.get("kind") or "")

    @property
    def name(self) -> str:
        return str(self._metadata.get("name") or self._metadata.get("generateName") or "")

    @property
    def namespace(self) -> str:
        return str(self._metadata.get("namespace") or "")

    @property
    def _metadata(self) -> dict[str, Any]:
        metadata = self.data.get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    def value_at(self, path: str) -> Any:
        """The value of a field; None if it is not set."""
        value: Any = self.data
        for part in path_parts(path):
            if isinstance(value, dict):
                value = value.get(str(part))
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                return None
        return value

    def locate(self, path: str) -> YamlLocation:
        """The position of a field, or of the nearest enclosing one that exists."""
        place = self.place
        for part in path_parts(path):
            inner = place.items.get(part)
            if inner is not None:
                place = inner
        return place


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that is not an object."""

    source: str
    line: int
    column: int
    problem: str


_PART: Final = re.compile(r"\[([^\]]*)\]|([^.\[]+)")


def path_parts(path: str) -> Iterator[str | int]:
    """`a.b[0].c[x.y/z]` as a, b, 0, c, x.y/z."""
    for match in _PART.finditer(path):
        inside, name = match.groups()
        if inside is None:
            yield name
        else:
            yield int(inside) if inside.isdecimal() else inside


def parse_manifests(
    source: str, content: bytes, scope: str = ""
) -> Iterator[Manifest | Unreadable]:
    """The objects in one file."""
    for found in _parsed(source, content):
        yield replace(found, scope=scope) if scope and isinstance(found, Manifest) else found


def _parsed(source: str, content: bytes) -> Iterator[Manifest | Unreadable]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        yield Unreadable(source, line, 1, "not UTF-8 text")
        return
    if text.lstrip()[:1] in ("{", "["):
        yield from _json_manifests(source, text)
    else:
        yield from _yaml_manifests(source, text)


# --- JSON ---


def _json_manifests(source: str, text: str) -> Iterator[Manifest | Unreadable]:
    body = text.encode()
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        yield _json_error(source, body, error)
        return
    # Large lists are read without positions: messages about them have no line.
    small = len(body) <= MAX_OBJECT_SIZE
    place, duplicates = _json_places(text) if small else (YamlLocation(), [])
    document = YamlDocument(data, place, duplicates)
    yield from _objects(source, document, len(body), text.splitlines())


def _json_error(source: str, body: bytes, error: Exception) -> Unreadable:
    if isinstance(error, RecursionError):
        return Unreadable(source, 1, 1, "JSON: nested too deeply")
    text = str(error).removeprefix("JSON is ")
    position = re.search(r"byte (\d+)", text)
    offset = int(position[1]) if position else len(body)
    line = body.count(b"\n", 0, offset) + 1
    column = offset - (body.rfind(b"\n", 0, offset) + 1) + 1
    return Unreadable(source, line, column, f"JSON: {text[:1].lower()}{text[1:]}")


def _json_places(text: str) -> tuple[YamlLocation, list[tuple[str, YamlLocation]]]:
    """Lines for messages. Almost all JSON is YAML too; where it is not, messages have no line."""
    try:
        document = next(parse_documents(text), None)
    except YamlError:
        return YamlLocation(), []
    return (document.place, document.duplicates) if document else (YamlLocation(), [])


# --- YAML ---

_SEPARATOR: Final = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_LIST_KIND: Final = re.compile(r"^kind:[ \t]*\w*List[ \t]*$", re.MULTILINE)


def _yaml_manifests(source: str, text: str) -> Iterator[Manifest | Unreadable]:
    lines = text.splitlines()
    for first_line, part in _split(text):
        if all(not line.strip() or line[0] in "#%" for line in part.splitlines()):
            continue  # nothing, comments or directives
        size = len(part.encode())
        if size > MAX_OBJECT_SIZE and not _LIST_KIND.search(part):
            yield Unreadable(source, first_line, 1, _too_large(size))
            continue
        try:
            for document in parse_documents(part):
                _shift(document, first_line - 1)
                yield from _objects(source, document, size, lines)
        except YamlError as error:
            line = error.line + first_line - 1
            yield Unreadable(source, line, error.column, f"YAML: {error.problem}")


def _split(text: str) -> Iterator[tuple[int, str]]:
    """The documents of a stream with their first lines, so that a syntax error affects only its own document."""
    start = 0
    line = 1
    for separator in _SEPARATOR.finditer(text):
        yield line, text[start : separator.start()]
        line += text.count("\n", start, separator.start())
        start = separator.start()
        if text.startswith("---\n", start) or text[start:].strip() == "---":
            start = separator.end()
    yield line, text[start:]


def _shift(document: YamlDocument, lines: int) -> None:
    if not lines:
        return
    pending = [document.place, *(place for _, place in document.duplicates)]
    seen: set[int] = set()
    while pending:
        place = pending.pop()
        if id(place) not in seen:
            seen.add(id(place))
            place.line += lines
            pending.extend(place.items.values())


def _too_large(size: int) -> str:
    return (
        f"document has {size / 1024 / 1024:.1f} MiB, and an object may have "
        f"{MAX_OBJECT_SIZE // 1024 // 1024} MiB at most"
    )


# --- objects ---


def _objects(
    source: str, document: YamlDocument, size: int, lines: Sequence[str]
) -> Iterator[Manifest | Unreadable]:
    data, place = document.value, document.place
    if not isinstance(data, dict):
        yield Unreadable(source, place.line, place.column, "not an object with apiVersion and kind")
        return
    items = data.get("items")
    if str(data.get("kind") or "").endswith("List") and isinstance(items, list):
        yield from _list_items(source, document, items, lines)
        return
    if size > MAX_OBJECT_SIZE:
        yield Unreadable(source, place.line, place.column, _too_large(size))
        return
    duplicates = tuple(document.duplicates)
    yield Manifest(source, data, msgspec.json.encode(data), place, lines, duplicates)


def _list_items(
    source: str, document: YamlDocument, items: list[Any], lines: Sequence[str]
) -> Iterator[Manifest | Unreadable]:
    kind = str(document.value["kind"]).removesuffix("List")
    places = document.place.items.get("items", YamlLocation()).items
    for index, item in enumerate(items):
        place = places.get(index, YamlLocation())
        if not isinstance(item, dict):
            yield Unreadable(source, place.line, place.column, f"items[{index}] is not an object")
            continue
        # The items of a typed list need not repeat what they are.
        type_meta = {"apiVersion": document.value.get("apiVersion"), "kind": kind} if kind else {}
        data = type_meta | item
        prefix = f"items[{index}]."
        duplicates = tuple(
            (path.removeprefix(prefix), where)
            for path, where in document.duplicates
            if path.startswith(prefix)
        )
        yield Manifest(source, data, msgspec.json.encode(data), place, lines, duplicates)
