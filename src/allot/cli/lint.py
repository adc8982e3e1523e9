"""`allot lint`: check manifests offline."""

from __future__ import annotations

import click
import msgspec
from rich.console import Console
from rich.markup import escape

from allot.cli.errors import EXIT_FINDINGS, EXIT_OK, CommandError
from allot.cli.gate_options import gate_options, gates_from_option
from allot.cli.linting import Finding, Linter, Report
from allot.cli.manifests import read_manifests
from allot.rules import RuleSet


@click.command()
@click.option(
    "-f",
    "--filename",
    "sources",
    multiple=True,
    metavar="FILE",
    help="A file, a directory (searched for .yaml, .yml and .json), or - for standard input. "
    "Can be given several times.",
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@gate_options()
@click.argument("more", nargs=-1, metavar="[FILE]...")
def lint(
    sources: tuple[str, ...],
    output: str,
    feature_gates: str,
    rules: RuleSet | None,
    more: tuple[str, ...],
) -> int:
    """Check manifests: would the API server accept them?

    Every DRA object, and the DRA parts of pods and of what creates pods, is checked as Kubernetes
    v1.38 would on creation. Other kinds are passed over. Prints file, line, field, what is wrong and
    what is allowed.
    """
    wanted = [*sources, *more]
    if not wanted:
        raise CommandError("nothing to check: name files with -f FILE, or -f - for standard input")
    report = Linter(gates_from_option(feature_gates, rules)).check(read_manifests(wanted))
    if output == "json":
        _print_json(report)
    else:
        _print_text(report)
    return EXIT_FINDINGS if report.errors else EXIT_OK


def _print_json(report: Report) -> None:
    document = {
        "findings": [finding._asdict() for finding in report.findings],
        "checked": report.checked,
        "skipped": report.skipped,
    }
    click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


_STYLES = {"error": "bold red", "warning": "bold yellow"}


def _print_text(report: Report) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for finding in report.findings:
        console.print(_line(finding))
        if finding.snippet:
            console.print(finding.snippet, style="dim", markup=False)
    console.print(_summary(report))


def _line(finding: Finding) -> str:
    place = f"{escape(finding.source)}:{finding.line}:{finding.column}"
    style = _STYLES[finding.severity]
    about = escape(" ".join(filter(None, (finding.object, finding.field))))
    message = escape(finding.message)
    subject = f"[bold]{about}[/]: " if about else ""
    return f"[cyan]{place}[/]: [{style}]{finding.severity}[/]: {subject}{message}"


def _summary(report: Report) -> str:
    warnings = len(report.findings) - report.errors
    parts = [_count(report.checked, "object") + " checked"]
    if report.skipped:
        parts.append(f"{report.skipped} of other kinds passed over")
    parts.append(_count(report.errors, "error") if report.errors else "[green]no errors[/]")
    if warnings:
        parts.append(_count(warnings, "warning"))
    return ", ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
