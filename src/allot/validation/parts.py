"""Untyped parts of objects: what does not have the expected shape is skipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Part = Mapping[str, Any]


def parts(owner: Part, field: str) -> list[Part]:
    """The objects in a list."""
    items = owner.get(field)
    return (
        [item for item in items if isinstance(item, dict)]
        if isinstance(items, (list, tuple))
        else []
    )


def texts(owner: Part, field: str) -> tuple[str, ...]:
    """The strings in a list."""
    items = owner.get(field)
    return (
        tuple(text for text in items if isinstance(text, str))
        if isinstance(items, (list, tuple))
        else ()
    )


def text(owner: Part, field: str) -> str:
    """The string in a field; an empty one if the field is not set."""
    found = owner.get(field)
    return found if isinstance(found, str) else ""


def part(owner: Part, field: str) -> Part:
    """The object in a field; empty if it is missing."""
    return as_part(owner.get(field))


def as_part(value: object) -> dict[str, Any]:
    """A value that is an object; an empty one if it is not."""
    return value if isinstance(value, dict) else {}
