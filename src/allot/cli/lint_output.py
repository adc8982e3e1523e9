"""How `allot lint` prints: for people, and for programs."""

from __future__ import annotations

import textwrap
from typing import Any, Final

import click
import msgspec
import yaml
from rich.markup import escape

from allot._version import VERSION
from allot.api.printable_text import printable
from allot.cli.console import PrintableConsole
from allot.lint.findings import Finding, Report, Severity
from allot.lint.sarif import sarif

_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow"}
_WIDTH: Final = 80
_INDENT: Final = "    "


def print_report(report: Report, output: str) -> None:
    """The report as text, json, yaml or sarif."""
    match output:
        case "text":
            _print_text(report)
        case "sarif":
            _print_json(sarif(report, VERSION))
        case "yaml":
            document = yaml.safe_dump(_document(report), sort_keys=False, allow_unicode=True)
            click.echo(document, nl=False)
        case _:
            _print_json(_document(report))


def _document(report: Report) -> dict[str, Any]:
    findings = [
        {**finding._asdict(), "severity": finding.severity.value} for finding in report.findings
    ]
    return {
        "findings": findings,
        "checked": report.checked,
        "skipped": report.skipped,
        "errors": report.errors,
        "warnings": report.warnings,
    }


def _print_json(document: dict[str, Any]) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


# --- for people ---


def _print_text(report: Report) -> None:
    console = PrintableConsole(soft_wrap=True)
    before: Finding | None = None
    for finding in report.findings:
        if before is not None and (before.source, before.object) != (
            finding.source,
            finding.object,
        ):
            console.print()
        before = finding
        console.print(_heading(finding))
        console.print(_body(finding), markup=False)
        if finding.snippet:
            console.print(finding.snippet, style="dim", markup=False)
        if finding.fix:
            console.print(_wrapped(f"--fix: {finding.fix}"), style="green", markup=False)
    if report.findings:
        console.print()
    console.print(_summary(report))


def _heading(finding: Finding) -> str:
    place = f"{_shown(finding.source)}:{finding.line}:{finding.column}"
    style = _STYLES[finding.severity]
    subject = f" [bold]{_shown(finding.object)}[/]" if finding.object else ""
    rule = escape(f"[{finding.rule}]")
    return f"[cyan]{place}[/]: [{style}]{finding.severity}[/]:{subject} {rule}"


def _shown(text: str) -> str:
    return escape(printable(text))


def _body(finding: Finding) -> str:
    if not finding.field:
        return _wrapped(finding.message)
    return f"{_INDENT}{printable(finding.field)}:\n{_wrapped(finding.message)}"


def _wrapped(text: str) -> str:
    """Lines of at most 80 columns; names that are longer stay in one piece."""
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _summary(report: Report) -> str:
    parts = [_count(report.checked, "object") + " checked"]
    if report.skipped:
        parts.append(f"{report.skipped} of other kinds skipped")
    parts.append(_count(report.errors, "error") if report.errors else "[green]no errors[/]")
    if report.warnings:
        parts.append(_count(report.warnings, "warning"))
    return ", ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
