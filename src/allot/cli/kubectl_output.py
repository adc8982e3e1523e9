"""Objects as `kubectl get` prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

NONE: Final = "<none>"
_GAP: Final = "   "
_STEP: Final = re.compile(
    r"\.(?P<field>[A-Za-z][\w-]*)"
    r"|\[(?P<all>\*)\]"
    r"|\[(?P<index>\d+)\]"
    r'|\[\?\(@\.(?P<key>\w+)=="(?P<wanted>[^"]*)"\)\]',
    re.ASCII,
)

Columns = Mapping[str, str]
"""Paths by heading, as in `-o custom-columns=HEADING:.path`."""


def custom_columns(items: Iterable[Any], columns: Columns) -> list[str]:
    """The lines of `kubectl get -o custom-columns=…`."""
    rows = [
        [",".join(map(_text, values_at(item, path))) or NONE for path in columns.values()]
        for item in items
    ]
    return aligned([list(columns), *rows])


def server_table(table: Mapping[str, Any], *, is_wide: bool = False) -> list[str]:
    """The lines of `kubectl get`, or of `kubectl get -o wide`, from a Table of the server."""
    shown = [
        (number, column["name"].upper())
        for number, column in enumerate(table["columnDefinitions"])
        if is_wide or not column.get("priority")
    ]
    rows = [[_text(row["cells"][number]) for number, _ in shown] for row in table.get("rows") or ()]
    return aligned([[heading for _, heading in shown], *rows])


def values_at(value: Any, path: str) -> list[Any]:
    """What a path such as `.spec.items[*].name` leads to. Whatever is missing is left out."""
    found = [value]
    position = 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError(f"{path!r}: cannot be read from {path[position:]!r} on")
        found = [each for one in found for each in _taken(one, step)]
        position = step.end()
    return [each for each in found if each is not None]


def _taken(value: Any, step: re.Match[str]) -> list[Any]:
    if step["field"]:
        return [value[step["field"]]] if isinstance(value, dict) and step["field"] in value else []
    if not isinstance(value, list):
        return []
    if step["all"]:
        return value
    if step["index"]:
        return value[int(step["index"]) :][:1]
    return [
        each for each in value if isinstance(each, dict) and each[step["key"]] == step["wanted"]
    ]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells below each other, one line for each row."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
