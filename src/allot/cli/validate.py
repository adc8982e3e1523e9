"""`allot validate`: the conformance interface for validation, conversion, quota, tables, numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import BinaryIO

import click
import msgspec

from allot.cli.errors import EXIT_FINDINGS, EXIT_OK, CommandError
from allot.cli.gate_options import rules_option
from allot.cli.vectors import VectorAnswerer, kind_of_texts
from allot.rules import RuleSet


@click.command()
@click.option("--jsonl", is_flag=True, help="JSON lines in, JSON lines out (the only way so far).")
@click.option(
    "--texts",
    type=click.Choice(["quantity", "semver"]),
    help="What `parse` and `cmp` lines are about; detected from the lines by default.",
)
@rules_option(RuleSet.V1_38)
@click.argument("file", type=click.File("rb"), default="-")
def validate(jsonl: bool, texts: str | None, rules: RuleSet | None, file: BinaryIO) -> int:
    """Answer test vectors: what does Kubernetes v1.38 answer?

    Reads one JSON object per line from FILE (default: standard input) and writes one answer per
    line: writes (create, update, status) with their prepared object or field errors, conversions
    between versions, quota usage, table rows, quantities and semantic versions. To check manifests,
    use `allot lint`. With --rules seeds every answer also has `rules`.
    """
    if not jsonl:
        raise CommandError(
            "validate answers test vectors: add --jsonl, or use `allot lint -f FILE`"
        )
    lines: Iterable[bytes] = file
    if texts is None and file.seekable():
        lines = file.readlines()
        texts = kind_of_texts(lines)
    answerer = VectorAnswerer(texts=texts, rules=rules or RuleSet.V1_38)
    failed = False
    for line in lines:
        if not line.strip():
            continue
        answer = answerer.answer(line)
        failed = failed or "not a vector" in str(answer.get("error", ""))
        if rules is RuleSet.SEEDS:
            answer["rules"] = rules
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()
    return EXIT_FINDINGS if failed else EXIT_OK
