"""Paths into JSON documents: `a.b[0].c[*].d['x.y/z'][?name=foo]`.

`[*]` takes every element of a list or value of an object, `[?name=foo]` the first element of a list
whose field has that value.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = Any
"""A JSON value: null, a scalar, a list, or a dict with string keys."""

SEGMENT = re.compile(
    r"\.?(?P<key>[A-Za-z0-9_$-]+)"
    r"|\['(?P<quoted>[^']+)'\]"
    r"|\[(?P<index>\d+)\]"
    r"|(?P<every>\[\*\])"
    r"|\[\?(?P<field>[^=\]]+)=(?P<value>[^\]]*)\]"
)


class Key(NamedTuple):
    name: str

    def select(self, parent: Json) -> list[Json]:
        return [parent[self.name]] if isinstance(parent, dict) and self.name in parent else []


class Index(NamedTuple):
    position: int

    def select(self, parent: Json) -> list[Json]:
        return parent[self.position : self.position + 1] if isinstance(parent, list) else []


class Every(NamedTuple):
    def select(self, parent: Json) -> list[Json]:
        match parent:
            case list():
                return parent
            case dict():
                return list(parent.values())
            case _:
                return []


class Where(NamedTuple):
    field: str
    value: str

    def position(self, parent: Json) -> int | None:
        if isinstance(parent, list):
            for position, element in enumerate(parent):
                if isinstance(element, dict) and str(element.get(self.field)) == self.value:
                    return position
        return None

    def select(self, parent: Json) -> list[Json]:
        position = self.position(parent)
        return [] if position is None else [parent[position]]


Segment: TypeAlias = Key | Index | Every | Where


class Found(NamedTuple):
    """What is at a path."""

    values: list[Json]
    is_many: bool
    """The path holds a `[*]`: its value is the list of all it finds."""

    @property
    def value(self) -> Json:
        """Null if there is nothing."""
        if self.is_many:
            return self.values
        return self.values[0] if self.values else None


@lru_cache
def parse_path(path: str) -> tuple[Segment, ...]:
    segments: list[Segment] = []
    end = 0
    while end < len(path):
        part = SEGMENT.match(path, end)
        if part is None:
            raise ValueError(f"bad path {path!r}, at {end}")
        end = part.end()
        segments.append(_segment(part))
    return tuple(segments)


def _segment(part: re.Match[str]) -> Segment:
    match part.lastgroup:
        case "key" | "quoted" as group:
            return Key(part[group])
        case "index":
            return Index(int(part["index"]))
        case "every":
            return Every()
        case _:
            return Where(part["field"], part["value"])


def find(document: Json, path: str) -> Found:
    segments = parse_path(path)
    values = [document]
    for segment in segments:
        values = [found for value in values for found in segment.select(value)]
    return Found(values, any(isinstance(segment, Every) for segment in segments))


def set_at(document: Json, path: str, value: Json) -> None:
    """Put a value where the path leads; objects on the way are made if they are missing."""
    *way, last = parse_path(path)
    parent = document
    for segment in way:
        place = _place(segment, parent)
        parent = parent.setdefault(place, {}) if isinstance(parent, dict) else parent[place]
    parent[_place(last, parent)] = value


def remove_at(document: Json, path: str) -> None:
    """Take away what is at the path, if it is there."""
    *way, last = parse_path(path)
    parent = document
    for segment in way:
        found = segment.select(parent)
        if not found:
            return
        parent = found[0]
    if last.select(parent):
        del parent[_place(last, parent)]


def _place(segment: Segment, parent: Json) -> str | int:
    match segment:
        case Key(name):
            return name
        case Index(position):
            return position
        case Where():
            place = segment.position(parent)
            if place is not None:
                return place
    raise ValueError(f"{segment} names no place to write to")
