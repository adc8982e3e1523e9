"""Findings in SARIF 2.1.0, which code hosts show beside the lines of a change."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from allot.lint.findings import Finding, Report, Rule
from allot.lint.rule_table import RULES

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION: Final = "2.1.0"


def sarif(
    report: Report, tool_version: str, *, tool: str = "allot lint", more: Iterable[Rule] = ()
) -> dict[str, Any]:
    """One run with all rules, so that hosts can also tell which findings are gone.

    `more` are rules of the tool that lint does not have.
    """
    rules = [*RULES.values(), *more]
    indices = {rule.id: index for index, rule in enumerate(rules)}
    return {
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": tool,
                        "version": tool_version,
                        "semanticVersion": tool_version,
                        "rules": [_rule(rule) for rule in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, indices) for finding in report.findings],
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": f"{rule.summary}. {rule.help}"},
        "help": {"text": rule.help, "markdown": rule.help},
        "defaultConfiguration": {"level": rule.severity.value},
    }


def _result(finding: Finding, indices: dict[str, int]) -> dict[str, Any]:
    subject = " ".join(filter(None, (finding.object, finding.field)))
    text = f"{subject}: {finding.message}" if subject else finding.message
    region: dict[str, Any] = {"startLine": finding.line, "startColumn": finding.column}
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(finding.source)},
            "region": region,
        }
    }
    if finding.object:
        location["logicalLocations"] = [{"fullyQualifiedName": subject, "kind": "object"}]
    return {
        "ruleId": finding.rule,
        "ruleIndex": indices[finding.rule],
        "level": finding.severity.value,
        "message": {"text": text},
        "locations": [location],
    }


def _uri(source: str) -> str:
    """A relative reference, with `/`, as code hosts want it."""
    path = PurePath(source)
    if path.is_absolute():
        return path.as_uri()
    return quote(path.as_posix())
