"""Errors of expressions.

A compile error has its issues with their positions, so that a caller can point at them. An evaluation
error has Kubernetes' message and the cost of the evaluation up to it.
"""

from __future__ import annotations

from typing import NamedTuple

from allot.cel.source import Source


class Issue(NamedTuple):
    """One issue: its position (line from 1, column from 0, in code points) and message."""

    line: int
    column: int
    message: str


class CelError(Exception):
    """An error caused by an expression."""


class CelCompileError(CelError):
    """The expression does not compile. The message is the one Kubernetes clients see."""

    def __init__(self, text: str, issues: tuple[Issue, ...] = (), internal: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.issues = issues
        self.internal = internal
        """Kubernetes reports these as internal errors: constants that cannot be converted."""


class CelEvaluationError(CelError):
    """The expression failed on these inputs."""

    def __init__(self, text: str, cost: int = 0) -> None:
        super().__init__(text)
        self.text = text
        self.cost = cost


class EvalError(Exception):
    """An error value while an expression is evaluated: `&&` and `||` may still absorb it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class CostLimitError(Exception):
    """The evaluation exceeded the cost limit. No operator absorbs this."""


COST_LIMIT_TEXT = "operation cancelled: actual cost limit exceeded"
NO_SUCH_OVERLOAD = "no such overload"


def compilation_failed(source: Source, issues: list[Issue]) -> CelCompileError:
    """The error for these issues, in order of position, each with its line and a caret."""
    ordered = tuple(sorted(issues, key=lambda issue: issue[:2]))
    shown = "\n".join(_display(source, issue) for issue in ordered[:_MOST_ISSUES])
    hidden = len(ordered) - _MOST_ISSUES
    if hidden > 0:
        shown += f"\n{hidden} more error(s) were omitted"
    return CelCompileError(f"compilation failed: {shown}", ordered)


_MOST_ISSUES = 100


def _display(source: Source, issue: Issue) -> str:
    text = f"ERROR: <input>:{issue.line}:{issue.column + 1}: {issue.message}"
    line = source.line(issue.line)
    if line is None or not source.text:
        return text
    dots = "".join("．" if wide else "." for wide in map(_is_wide, line[: issue.column]))
    caret = "＾" if _is_wide(line[issue.column : issue.column + 1]) else "^"
    return f"{text}\n | {line.replace(chr(9), ' ')}\n | {dots}{caret}"


def _is_wide(character: str) -> bool:
    """Characters that need more than one byte get a full-width dot or caret, as cel-go does."""
    return character > "\x7f"
