"""Simple paths in schemas: the `fieldPath` of a rule, and the path of a selectable field.

They start with a dot or a bracket: `.spec.x`, `['a.b'].c`. Lists cannot be indexed.
"""

from __future__ import annotations

import re
from typing import Final

from allot.validation.structural.schemas import Schema

_part: Final = re.compile(
    r"""\.(?P<name>[A-Za-z_$][A-Za-z0-9_\-/$]*)|\[(?P<quote>['"])(?P<quoted>(?:\\.|[^'"\\])*)(?P=quote)\]"""
)
_unescape: Final = re.compile(r"\\(.)")


class PathError(ValueError):
    """The path cannot be read; the message says where."""


def path_parts(text: str) -> list[str]:
    """The names in a path; `PathError` if it is not one."""
    parts: list[str] = []
    position = 0
    while position < len(text):
        found = _part.match(text, position)
        if found is None:
            rest = re.match(r"[^.\[]+|.", text[position:])
            token = rest[0] if rest else text[position:]
            raise PathError(f"expected [ or . but got: {token}")
        name = found["name"]
        parts.append(name if name is not None else _unescape.sub(r"\1", found["quoted"]))
        position = found.end()
    return parts


def parse_field_path(text: str, schema: Schema) -> list[str] | None:
    """The names of a path that the schema has; None if it does not."""
    try:
        parts = path_parts(text)
    except PathError:
        return None
    node: Schema | None = schema
    for part in parts:
        if node is None:
            return None
        node = node.properties.get(part) or node.additional
    return parts if parts and node is not None else None


def schema_at(parts: list[str], schema: Schema) -> Schema | None:
    """The schema of the field at a path; None if there is no such field."""
    node: Schema | None = schema
    for part in parts:
        node = node.properties.get(part) if node is not None else None
    return node
