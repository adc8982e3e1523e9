"""The options of `allot lint`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from allot.cli.completers import complete_contexts, complete_rules
from allot.cli.gate_options import gate_options

FORMATS: Final = ("text", "json", "yaml", "sarif")
TARGETS: Final = ("allot", "kubernetes-1.38")


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
@click.option("-o", "--output", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Check against the cluster, too: its classes, slices, templates, claims and namespaces.",
)
@click.option(
    "--context",
    metavar="NAME",
    shell_complete=complete_contexts,
    help="The context in the kubeconfig. Also reads the cluster.",
)
@click.option(
    "--target",
    type=click.Choice(TARGETS),
    default=TARGETS[0],
    show_default=True,
    help="Also report what this cluster refuses, drops or decides otherwise.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="RULE",
    shell_complete=complete_rules,
    help="Leave out a rule. Can be given several times.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["warning", "error"]),
    default="warning",
    show_default=True,
    help="The least severity that makes the command exit 1.",
)
@click.option("--fix", is_flag=True, help="Correct what can be corrected safely, in the files.")
@click.option("--dry-run", is_flag=True, help="With --fix: show the changes as a diff only.")
@gate_options()
@click.argument("more", nargs=-1, metavar="[FILE]...")
def lint(**options: Any) -> int:
    """Check manifests: would the API server accept them, and can they work?

    All files are checked together: classes, slices, templates, claims and pods (also those in
    Deployments, Jobs and the like) are compared with each other, and with --kubeconfig or --context
    with what the cluster has. Other kinds are skipped. Prints file, line, rule, field, what is wrong
    and what to change.

    Exits 0 without findings, 1 with some, 2 if the command or its input cannot be read.
    """
    from allot.cli.lint import lint_files

    return lint_files(**options)
