"""Defaults of custom resources: fields that are missing, or null where null is not allowed."""

from __future__ import annotations

from typing import Any, Final

from allot.validation.structural.schemas import Schema

MAX_DEFAULTS: Final = 3 * 1024 * 1024
"""How many bytes defaults may add to an object: as many as a request may have."""


class DefaultsTooLargeError(Exception):
    """An object would be too large with the defaults of its schema."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the defaults of the schema would add more than {limit} bytes")


class _Room:
    """What defaults may still add."""

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit

    def take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise DefaultsTooLargeError(self._limit)


def with_defaults(value: Any, schema: Schema, limit: int = MAX_DEFAULTS) -> Any:
    """The value with defaults; the same one if nothing is missing.

    `DefaultsTooLargeError` if they add more than the limit: a short list of empty items may become gigabytes.
    """
    return _with_defaults(value, schema, _Room(limit))


def _with_defaults(value: Any, schema: Schema, room: _Room) -> Any:
    if not schema.has_defaults_below:
        return value
    if isinstance(value, dict):
        return _object_with_defaults(value, schema, room)
    if isinstance(value, list) and schema.items is not None:
        return _list_with_defaults(value, schema.items, room)
    return value


def _object_with_defaults(value: dict[str, Any], schema: Schema, room: _Room) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name, child in schema.properties.items():
        if not child.has_defaults_below:
            continue
        found = value.get(name)
        if found is None and child.has_default and (name not in value or not child.nullable):
            changed[name] = _default(child, room, len(name))
        elif found is not None:
            filled = _with_defaults(found, child, room)
            if filled is not found:
                changed[name] = filled
    additional = schema.additional
    if additional is not None and additional.has_defaults_below:
        for name, found in value.items():
            if name in schema.properties:
                continue
            if found is None and additional.has_default and not additional.nullable:
                changed[name] = _default(additional, room)
            else:
                filled = _with_defaults(found, additional, room)
                if filled is not found:
                    changed[name] = filled
    return {**value, **changed} if changed else value


def _list_with_defaults(value: list[Any], items: Schema, room: _Room) -> list[Any]:
    filled = [
        _default(items, room) if _takes_default(item, items) else _with_defaults(item, items, room)
        for item in value
    ]
    if all(new is old for new, old in zip(filled, value, strict=True)):
        return value
    return filled


def _takes_default(item: Any, items: Schema) -> bool:
    return item is None and items.has_default and not items.nullable


def _default(schema: Schema, room: _Room, name_size: int = 0) -> Any:
    room.take(schema.default_size + name_size)
    return _with_defaults(schema.default, schema, room)


def without_nulls(value: Any, schema: Schema) -> Any:
    """The value without nulls in fields that are not nullable: they count as missing."""
    if isinstance(value, dict):
        kept = {}
        for name, item in value.items():
            child = schema.below(name)
            if child is None:
                kept[name] = item
            elif item is not None or child.nullable:
                kept[name] = without_nulls(item, child)
        return kept
    if isinstance(value, list) and schema.items is not None:
        return [without_nulls(item, schema.items) for item in value]
    return value
