"""YAML as Kubernetes reads it, with the place of every value.

Documents are built from parser events with a stack of our own: nesting is limited and cannot exhaust
the interpreter's, aliases cannot multiply without bound, and duplicate keys are noticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import yaml

MAX_DEPTH: Final = 200
MAX_VALUES: Final = 2_000_000
MAX_ALIASED_SIZE: Final = 8 * 1024 * 1024
"""How much all aliases of a document may stand for together, in characters."""
MAX_INTEGER_DIGITS: Final = 400

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """The text is not YAML that Kubernetes would read."""

    def __init__(self, problem: str, line: int, column: int = 1) -> None:
        super().__init__(problem)
        self.problem, self.line, self.column = problem, line, column


@dataclass(slots=True)
class YamlLocation:
    """Where a value stands (lines and columns from 1), and where the values in it stand."""

    line: int = 1
    column: int = 1
    items: dict[str | int, YamlLocation] = field(default_factory=dict)


@dataclass(slots=True)
class YamlDocument:
    """One YAML document: its value, where everything stands, and keys that stand there twice."""

    value: Any
    place: YamlLocation
    duplicates: list[tuple[str, YamlLocation]]


@dataclass(slots=True)
class _Frame:
    """A container that is being read."""

    value: Any
    place: YamlLocation
    path: str
    anchor: str | None
    start: int
    start_size: int
    key: Any = None
    has_key: bool = False
    merges: bool = False


class _Anchor(NamedTuple):
    """What an alias stands for: how many values, and how many characters of text in them."""

    value: Any
    values: int
    characters: int


def parse_documents(
    text: str, max_values: int = MAX_VALUES, *, with_places: bool = True
) -> Iterator[YamlDocument]:
    """Every document in `text`; empty ones are left out.

    Without places, those of values in containers are not noted: they take more room than the values.
    """
    try:
        yield from _documents(text, max_values, with_places)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise YamlError(_problem(error, text, line, column), line, column) from None
    except yaml.YAMLError as error:  # such as characters that YAML does not allow
        raise YamlError(str(error).splitlines()[0], 1) from None


def _problem(error: yaml.MarkedYAMLError, text: str, line: int, column: int) -> str:
    lines = text.splitlines()
    if line <= len(lines) and lines[line - 1][column - 1 : column] == "\t":
        return "a tab character, and YAML allows only spaces for indentation"
    problem = error.problem or "not YAML"
    return f"{error.context}: {problem}" if error.context else problem


def _documents(text: str, max_values: int, with_places: bool) -> Iterator[YamlDocument]:
    builder: _Builder | None = None
    for event in yaml.parse(text, Loader=_LOADER):
        match event:
            case yaml.DocumentStartEvent():
                builder = _Builder(max_values, with_places)
            case yaml.DocumentEndEvent():
                assert builder is not None
                if builder.root is not None:
                    yield YamlDocument(builder.root, builder.place, builder.duplicates)
            case yaml.StreamStartEvent() | yaml.StreamEndEvent():
                pass
            case _:
                assert builder is not None
                builder.add(event)


class _Builder:
    """Puts one document together from events."""

    def __init__(self, max_values: int, with_places: bool) -> None:
        self.root: Any = None
        self._with_places = with_places
        self._max_values = max_values
        self.place = YamlLocation()
        self.duplicates: list[tuple[str, YamlLocation]] = []
        self._stack: list[_Frame] = []
        self._anchors: dict[str, _Anchor] = {}
        self._count = 0
        self._size = 0
        self._aliased_size = 0
        self._has_aliases = False

    def add(self, event: yaml.Event) -> None:
        mark = event.start_mark
        place = YamlLocation(mark.line + 1, mark.column + 1) if mark else YamlLocation()
        match event:
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event, place)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close()
            case yaml.ScalarEvent():
                value = _scalar(event, place)
                if event.anchor:
                    self._anchors[event.anchor] = _Anchor(value, 1, len(event.value))
                self._size += len(event.value)
                self._put(value, place, merges=value == "<<" and event.implicit[0])
            case yaml.AliasEvent():
                anchor = self._anchors.get(event.anchor or "")
                if anchor is None:
                    raise YamlError(f"unknown alias {event.anchor!r}", place.line, place.column)
                self._has_aliases = True
                self._grow(anchor.values, place)
                self._size += anchor.characters
                self._aliased_size += anchor.characters
                self._put(anchor.value, place)

    def _grow(self, count: int, place: YamlLocation) -> None:
        self._count += count
        if self._count > self._max_values or self._aliased_size > MAX_ALIASED_SIZE:
            problem = (
                "aliases stand for too many values" if self._has_aliases else "too many values"
            )
            raise YamlError(problem, place.line, place.column)

    def _open(self, event: yaml.CollectionStartEvent, place: YamlLocation) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise YamlError(f"nested more than {MAX_DEPTH} levels deep", place.line, place.column)
        _refuse_unknown_tag(event.tag, place)
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        path = self._path_of_next()
        self._stack.append(_Frame(value, place, path, event.anchor, self._count, self._size))

    def _path_of_next(self) -> str:
        if not self._stack:
            return ""
        top = self._stack[-1]
        if isinstance(top.value, list):
            return f"{top.path}[{len(top.value)}]"
        return f"{top.path}.{top.key}" if top.path else str(top.key)

    def _close(self) -> None:
        frame = self._stack.pop()
        if frame.anchor:
            count, size = self._count - frame.start + 1, self._size - frame.start_size
            self._anchors[frame.anchor] = _Anchor(frame.value, count, size)
        self._put(frame.value, frame.place)

    def _put(self, value: Any, place: YamlLocation, *, merges: bool = False) -> None:
        """`merges`: the value is a plain <<, which as a key merges mappings."""
        self._grow(1, place)
        if not self._stack:
            self.root, self.place = value, place
            return
        top = self._stack[-1]
        if isinstance(top.value, list):
            if self._with_places:
                top.place.items[len(top.value)] = place
            top.value.append(value)
        elif not top.has_key:
            top.key, top.has_key, top.merges = _key(value, place), True, merges
            # The key's place, until there is a value.
            if top.key in top.value:
                self.duplicates.append((self._path_of_next(), place))
            if self._with_places:
                top.place.items[top.key] = place
        else:
            self._put_pair(top, value, place)

    def _put_pair(self, top: _Frame, value: Any, place: YamlLocation) -> None:
        top.has_key = False
        if top.merges:
            top.place.items.pop("<<", None)
            sources = value if isinstance(value, list) else [value]
            if not all(isinstance(source, dict) for source in sources):
                raise YamlError("<< can only merge mappings", place.line, place.column)
            for source in sources:
                for key, merged in source.items():
                    top.value.setdefault(key, merged)
            return
        top.value[top.key] = value
        if not self._with_places:
            return
        where = top.place.items[top.key]
        where.items = place.items
        if isinstance(value, str | int | float | bool):
            where.line, where.column = place.line, place.column


def _key(value: Any, place: YamlLocation) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise YamlError("keys must be texts", place.line, place.column)


# --- scalars ---

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE: Final = frozenset(
    {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}
)
_is_decimal: Final = re.compile(r"[-+]?(0|[1-9][0-9_]*)").fullmatch
_is_octal: Final = re.compile(r"[-+]?0(o_*[0-7][0-7_]*|[0-7_]+)").fullmatch
_is_hex: Final = re.compile(r"[-+]?0x_*[0-9a-fA-F][0-9a-fA-F_]*").fullmatch
_is_binary: Final = re.compile(r"[-+]?0b_*[01][01_]*").fullmatch
_is_float: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?").fullmatch
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)").fullmatch
_TAG: Final = "tag:yaml.org,2002:"


def _refuse_unknown_tag(tag: str | None, place: YamlLocation) -> None:
    if tag not in (None, "!", _TAG + "map", _TAG + "seq"):
        raise YamlError(f"tag {tag!r} means nothing here", place.line, place.column)


def _scalar(event: yaml.ScalarEvent, place: YamlLocation) -> Any:
    text = event.value
    tag = event.tag
    if tag in ("!", _TAG + "str") or (tag is None and not event.implicit[0]):
        return text
    if tag is not None and not tag.startswith(_TAG):
        _refuse_unknown_tag(tag, place)
    if text in _NULLS:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    return _number(text, place)


def _number(text: str, place: YamlLocation) -> Any:
    """The number a plain text stands for, or the text."""
    if text[0] not in "+-.0123456789":
        return text
    for matches, base in ((_is_decimal, 10), (_is_hex, 16), (_is_binary, 2), (_is_octal, 8)):
        if matches(text):
            if len(text) > MAX_INTEGER_DIGITS:
                raise YamlError("number is too large", place.line, place.column)
            return int(text.replace("_", "").replace("0o", "0"), base)
    if _NOT_FINITE(text):
        raise YamlError(f"{text} is not a number JSON can carry", place.line, place.column)
    if _is_float(text):
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise YamlError("number is too large", place.line, place.column)
        return int(number) if number.is_integer() and abs(number) < 2**63 else number
    return text
