"""The options of `allot validate`."""

from __future__ import annotations

from typing import Any

import click

from allot.cli.gate_options import rules_option
from allot.rules import RuleSet


@click.command()
@click.option("--jsonl", is_flag=True, help="JSON lines in, JSON lines out (the only way so far).")
@click.option(
    "--texts",
    type=click.Choice(["quantity", "semver"]),
    help="What `parse` and `cmp` lines without a key `texts` are about; detected from the lines by default.",
)
@rules_option(RuleSet.V1_38)
@click.argument("file", type=click.File("rb"), default="-")
def validate(**options: Any) -> int:
    """Answer test vectors: what does Kubernetes v1.38 answer?

    Reads one JSON object per line from FILE (default: standard input) and writes one answer per
    line: writes (create, update, status) with their prepared object or field errors, conversions
    between versions, quota usage, table rows, quantities and semantic versions. To check manifests,
    use `allot lint`. With --rules seeds every answer also has `rules`.
    """
    from allot.cli.validate import answer_vectors

    return answer_vectors(**options)
