"""Vectors of our own: scenarios in which a rule makes a difference, or must not, with both answers.

A line is a scenario of `allot allocate`, with the rule it is about and the devices that are expected: none is null, an
error of the whole attempt "error".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from allot.allocation import Allocated, Failed, StepBudget, allocate
from allot.cli.allocate import counting_share_ids, scenario_problem
from allot.rules import RULES, RuleSet

FILE: Final = Path(__file__).parent / "data" / "rules" / "allocation.jsonl"
VECTORS: Final[list[dict[str, Any]]] = [
    json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("rules", list(RuleSet))
@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_vector(vector: dict[str, Any], rules: RuleSet) -> None:
    _, problem = scenario_problem(json.dumps(vector).encode(), rules)
    outcome = allocate(problem, StepBudget(1_000), counting_share_ids())
    answer: Any = "error" if isinstance(outcome, Failed) else None
    if isinstance(outcome, Allocated):
        answer = [result.device for result in outcome.results[0].devices.results]

    assert answer == vector["expect"][rules]


def test_vectors_are_about_rules() -> None:
    assert {vector["rule"] for vector in VECTORS} <= RULES.keys()
