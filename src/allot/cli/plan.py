"""`allot plan`: what manifests would do if they were applied now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click
from rich.console import RenderableType
from rich.text import Text

from allot._version import VERSION
from allot.allocation.explain.amounts import counted
from allot.cli.echo import echo_text
from allot.cli.errors import EXIT_FINDINGS, EXIT_OK, EXIT_USAGE, CommandError
from allot.cli.manifests import read_manifests
from allot.cli.question_options import ClusterArguments, cluster_options
from allot.cli.tables import Column, notes, print_blocks, print_document, table
from allot.lint.findings import Report, Severity
from allot.lint.manifests import Manifest
from allot.lint.sarif import sarif
from allot.public.errors import ManifestError
from allot.public.loading import objects_in
from allot.questions.observed_cluster import KINDS
from allot.questions.plan import RULES, PlanAnswer, markdown
from allot.questions.plan import plan as ask

_AGENT: Final = "allot-plan"
_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow"}


@click.command()
@click.option(
    "-f",
    "--filename",
    "sources",
    multiple=True,
    required=True,
    metavar="FILE",
    help="The manifests: files or directories, or - for standard input.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning"]),
    default="error",
    show_default=True,
    help="The severity of findings from which on the exit code is 1.",
)
@cluster_options("--cluster")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml", "sarif", "markdown"]),
    default="table",
    show_default=True,
)
@click.option(
    "--width", type=click.IntRange(min=40), metavar="COLUMNS", help="Wrap text to so many columns."
)
def plan(
    cluster: ClusterArguments,
    sources: tuple[str, ...],
    fail_on: str,
    output: str,
    width: int | None,
) -> int:
    """Check manifests before they are applied: lint, would every pod run, quota, and the cost for others.

    They are applied to a copy of the cluster in memory, or to described hardware. Exit code 1 if there are errors: for
    pipelines, with SARIF for code hosts and Markdown for a summary.

    \b
    allot plan -f deploy/
    allot plan -f deploy/ --hardware gpu-server=4 -o sarif > plan.sarif
    allot plan -f deploy/ -o markdown >> "$GITHUB_STEP_SUMMARY"
    """
    manifests = list(read_manifests(sources))
    try:
        given = objects_in((each for each in manifests if isinstance(each, Manifest)), KINDS)
    except ManifestError as error:
        raise CommandError(str(error)) from None
    observed = cluster.load(_AGENT)
    answer, report = ask(observed, manifests, given, is_live=not cluster.is_offline)
    match output:
        case "sarif":
            print_document(sarif(report, VERSION, tool="allot plan", more=RULES), "json")
        case "markdown":
            echo_text(markdown(answer, report), nl=False)
        case "json" | "yaml":
            findings = [
                {**each._asdict(), "severity": each.severity.value} for each in report.findings
            ]
            print_document({"plan": answer, "findings": findings}, output)
        case _:
            print_blocks(_blocks(answer, report), width)
    if not report.is_readable:
        return EXIT_USAGE
    failed = report.errors if fail_on == "error" else len(report.findings)
    return EXIT_FINDINGS if failed else EXIT_OK


def _blocks(answer: PlanAnswer, report: Report) -> Iterator[RenderableType]:
    if answer.workloads:
        yield table(_WORKLOADS, answer.workloads)
    for finding in report.findings:
        where = f"{finding.source}:{finding.line}" if finding.source else finding.object
        head = Text(f"\n{where}: {finding.severity}", _STYLES[finding.severity])
        yield head.append(
            f" {finding.object} {finding.message} [{finding.rule}]", "not bold default"
        )
    if answer.others:
        yield Text("\nPods of others:", "bold")
        yield table(_OTHERS, answer.others)
    before, after = answer.devices_before, answer.devices_after
    yield Text(
        f"\nDevices held: {before.held} of {before.devices} before, {after.held} of {after.devices} after."
    )
    errors, warnings = counted(answer.errors, "error"), counted(answer.warnings, "warning")
    yield Text(f"{errors}, {warnings}.")
    yield from notes(answer.notes)


_WORKLOADS: Final = (
    Column("WORKLOAD", lambda row: row.name),
    Column("NAMESPACE", lambda row: row.namespace),
    Column("PODS", lambda row: str(row.wanted), is_number=True),
    Column("WOULD RUN", lambda row: str(row.running), is_number=True),
)
_OTHERS: Final = (
    Column("POD", lambda row: row.pod),
    Column("EFFECT", lambda row: str(row.effect)),
    Column("BEFORE", lambda row: row.before),
    Column("AFTER", lambda row: row.after),
    Column("WHY", lambda row: row.reason),
)
