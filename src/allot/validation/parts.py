"""Parts of objects that have no types of their own here: what is not of the expected form is not looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Part = Mapping[str, Any]


def parts(owner: Part, field: str) -> list[Part]:
    """The objects in a list."""
    items = owner.get(field)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def part(owner: Part, field: str) -> Part:
    """The object in a field; an empty one if there is none."""
    found = owner.get(field)
    return found if isinstance(found, dict) else {}
