"""Unique items: of lists of type set by value, of type map by their keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from allot.validation.fields import FieldError, FieldPath, duplicate, invalid
from allot.validation.structural.schemas import Schema


def validate_list_types(value: Any, schema: Schema, path: FieldPath | None) -> Iterator[FieldError]:
    """Items that are in a list more than once."""
    if not schema.has_list_types_below:
        return
    if isinstance(value, list):
        if path is not None:
            yield from _duplicates(value, schema, path)
        if schema.items is not None and path is not None:
            for index, item in enumerate(value):
                yield from validate_list_types(item, schema.items, path @ index)
    elif isinstance(value, dict):
        for name, item in value.items():
            child = schema.properties.get(name)
            if child is not None:
                where = FieldPath(name) if path is None else path / name
                yield from validate_list_types(item, child, where)
            elif schema.additional is not None:
                where = FieldPath(name) if path is None else path @ name
                yield from validate_list_types(item, schema.additional, where)


def _duplicates(value: list[Any], schema: Schema, path: FieldPath) -> Iterator[FieldError]:
    if schema.list_type not in ("set", "map"):
        return
    seen: set[bytes] = set()
    reported: set[bytes] = set()
    for index, item in enumerate(value):
        if schema.list_type == "map":
            if not isinstance(item, dict):
                if item is not None:
                    problem = "must be an object for an array of list-type map"
                    yield invalid(path @ index, item, problem)
                continue
            shown: Any = {name: item[name] for name in schema.list_map_keys if name in item}
        else:
            shown = item
        identity = msgspec.json.encode(shown, order="sorted")
        if identity in seen and identity not in reported:
            reported.add(identity)
            yield duplicate(path @ index, shown)
        seen.add(identity)
