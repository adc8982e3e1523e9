"""Defaults of custom resources: fields that are missing, or null where null is not allowed."""

from __future__ import annotations

from typing import Any

from allot.validation.structural.schemas import Schema


def with_defaults(value: Any, schema: Schema) -> Any:
    """The value with defaults; the same one if nothing is missing."""
    if not schema.has_defaults_below:
        return value
    if isinstance(value, dict):
        return _object_with_defaults(value, schema)
    if isinstance(value, list) and schema.items is not None:
        return _list_with_defaults(value, schema.items)
    return value


def _object_with_defaults(value: dict[str, Any], schema: Schema) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name, child in schema.properties.items():
        if not child.has_defaults_below:
            continue
        found = value.get(name)
        if found is None and child.has_default and (name not in value or not child.nullable):
            changed[name] = with_defaults(child.default, child)
        elif found is not None:
            filled = with_defaults(found, child)
            if filled is not found:
                changed[name] = filled
    additional = schema.additional
    if additional is not None and additional.has_defaults_below:
        for name, found in value.items():
            if name in schema.properties:
                continue
            if found is None and additional.has_default and not additional.nullable:
                changed[name] = with_defaults(additional.default, additional)
            else:
                filled = with_defaults(found, additional)
                if filled is not found:
                    changed[name] = filled
    return {**value, **changed} if changed else value


def _list_with_defaults(value: list[Any], items: Schema) -> list[Any]:
    filled = [
        with_defaults(items.default if _takes_default(item, items) else item, items)
        for item in value
    ]
    if all(new is old for new, old in zip(filled, value, strict=True)):
        return value
    return filled


def _takes_default(item: Any, items: Schema) -> bool:
    return item is None and items.has_default and not items.nullable


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
