"""Answers to test vectors and scenarios: a line of JSON for each line of input."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from allot.api.decoding import to_builtin
from allot.rules import RuleSet


def print_answer(answer: dict[str, Any], rules: RuleSet | None) -> None:
    """Print it at once: the program that asks may wait for it before it asks again.

    Answers by other rules than those of Kubernetes name them.
    """
    if rules is RuleSet.SEEDS:
        answer["rules"] = rules
    sys.stdout.buffer.write(msgspec.json.encode(answer, enc_hook=to_builtin) + b"\n")
    sys.stdout.buffer.flush()
