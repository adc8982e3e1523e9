"""`allot validate`: the conformance interface for validation, conversion, quota, tables, numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

import click

from allot.cli.answer_lines import print_answer
from allot.cli.errors import EXIT_FINDINGS, EXIT_OK, CommandError
from allot.cli.number_vectors import kind_of_texts
from allot.cli.vectors import VectorAnswerer
from allot.rules import RuleSet


def answer_vectors(*, jsonl: bool, texts: str | None, rules: RuleSet | None, file: BinaryIO) -> int:
    """The command `allot validate`: answers the vectors in a file, line by line."""
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
    read_as = ""
    for line in lines:
        if not line.strip():
            continue
        answer = answerer.answer(line)
        if answerer.texts_read_as != read_as:
            read_as = answerer.texts_read_as
            click.echo(
                f"note: reading the texts as {read_as}; --texts or the key texts of a line says which they are",
                err=True,
            )
        failed = failed or "not a vector" in str(answer.get("error", ""))
        print_answer(answer, rules)
    return EXIT_FINDINGS if failed else EXIT_OK
