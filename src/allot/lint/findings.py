"""Problems that rules find in an object, and findings with their position in a file."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from allot.lint.expressions import ExpressionIssue
from allot.lint.fixes import Fix


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    """The API server refuses it, or it names something that does not exist."""
    WARNING = "warning"
    """It is accepted, but does not work with the given objects, or does something else than it seems to."""


class Rule(NamedTuple):
    """One kind of mistake. `help` says what it leads to and what to change."""

    id: str
    severity: Severity
    summary: str
    help: str


class Problem(NamedTuple):
    """What a rule found in an object. `path` is a field of the object."""

    rule: Rule
    path: str
    message: str
    fix: Fix | None = None
    severity: Severity | None = None
    """The severity, where it differs from the rule's."""
    issue: ExpressionIssue | None = None
    """Where in the expression at `path` the problem is."""


class Finding(NamedTuple):
    """A problem with its position. Lines and columns start at 1."""

    rule: str
    severity: Severity
    source: str
    line: int
    column: int
    object: str
    field: str
    message: str
    snippet: str = ""
    """The line in question, and a caret under the place."""
    fix: str = ""
    """What `--fix` would change."""


class Report(NamedTuple):
    """All findings, and how many objects were checked or are of kinds that lint does not check."""

    findings: list[Finding]
    checked: int
    skipped: int

    def count(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)

    @property
    def errors(self) -> int:
        return self.count(Severity.ERROR)

    @property
    def warnings(self) -> int:
        return self.count(Severity.WARNING)

    @property
    def is_readable(self) -> bool:
        """Whether all of the input could be read as objects."""
        return all(finding.rule != UNREADABLE_ID for finding in self.findings)


UNREADABLE_ID = "unreadable"
