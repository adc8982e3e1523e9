"""Expressions in manifests: where they are, and where in the file a problem in one is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from allot.apiserver.yaml_documents import YamlLocation
from allot.lint.manifests import Manifest

MAX_LINES_SEARCHED: Final = 500


class ExpressionIssue(NamedTuple):
    """A problem in an expression: line and column from 1."""

    line: int
    column: int
    message: str


_ISSUE: Final = re.compile(r"^ERROR: <input>:(\d+):(\d+): (.*)$", re.MULTILINE)


def expression_issues(detail: str) -> list[ExpressionIssue]:
    """The problems that a field error about an expression lists."""
    if not detail.startswith("compilation failed: "):
        return []
    return [
        ExpressionIssue(int(line), max(int(column), 1), message)
        for line, column, message in _ISSUE.findall(detail.removeprefix("compilation failed: "))
    ]


def point_at(
    manifest: Manifest, path: str, expression: str, issue: ExpressionIssue
) -> tuple[YamlLocation, str]:
    """Where in the file the problem is, and the line there with a caret under it.

    Where the file writes the expression differently (escaped or folded), the expression's own line
    is shown, and the place is where it begins.
    """
    place = manifest.locate(path)
    expression_lines = expression.split("\n")
    shown = expression_lines[issue.line - 1] if issue.line <= len(expression_lines) else ""
    first = place.line - 1
    for number, line in enumerate(manifest.lines[first : first + MAX_LINES_SEARCHED], place.line):
        start = line.find(shown) if shown.strip() else -1
        if start >= 0:
            column = start + issue.column
            return YamlLocation(number, column), _snippet(line, column)
    return place, _snippet(shown, issue.column)


def _snippet(line: str, column: int) -> str:
    return f"    {line}\n    {' ' * (column - 1)}^"


class FoundExpression(NamedTuple):
    """An expression in an object, and whether it derives an attribute."""

    path: str
    text: str
    is_derived: bool


def expressions_in(value: Any, path: str = "") -> Iterator[FoundExpression]:
    """Every expression in an object, in its order."""
    if isinstance(value, dict):
        for key, inner in value.items():
            inner_path = f"{path}.{key}" if path else str(key)
            if key == "expression" and isinstance(inner, str):
                yield FoundExpression(inner_path, inner, "derivedAttributes[" in path)
            else:
                yield from expressions_in(inner, inner_path)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from expressions_in(inner, f"{path}[{index}]")
