"""Expressions above the cost limit: what is said, and that the advice helps."""

from __future__ import annotations

import pytest

from allot.cel import COST_LIMIT, UNBOUNDED_COST, compile_derived
from allot.cel.cost_advice import cost_problem, estimated_cost_text

TOPOLOGY = 'device.attributes["d.example.com"].topology'


@pytest.mark.parametrize(
    ("refused", "instead"),
    [
        ('split("-")[0].lowerAscii()', 'lowerAscii().split("-")[0]'),
        ('split("-")[0].matches("numa[01]")', 'matches("^numa[01]-")'),
        ('split("-")[0] + "-x"', 'replace("-rail", "-x")'),
        ('split("-")[0].find("[0-9]")', 'find("[0-9]")'),
    ],
)
def test_the_advice_helps(refused: str, instead: str) -> None:
    problem = cost_problem(compile_derived(f"{TOPOLOGY}.{refused}"))

    assert problem is not None
    assert "the estimated cost is unbounded, the limit is 1,000,000" in problem
    assert "split()" in problem
    assert cost_problem(compile_derived(f"{TOPOLOGY}.{instead}")) is None


@pytest.mark.parametrize("cheap", ['== "a"', '.startsWith("a")'])
def test_parts_are_cheap_to_compare(cheap: str) -> None:
    assert cost_problem(compile_derived(f'{TOPOLOGY}.split("-")[0]{cheap}')) is None
    assert cost_problem(compile_derived(f'int({TOPOLOGY}.split("-")[0]) + 1')) is None


def test_loops_in_loops() -> None:
    inner = "true"
    for name in "abcd":
        inner = f'device.attributes["d.example.com"].{name}.all({name}, {inner})'

    problem = cost_problem(compile_derived(inner))

    assert problem is not None
    assert "a loop in a loop" in problem


def test_estimates_for_people() -> None:
    assert estimated_cost_text(18) == "18"
    assert estimated_cost_text(COST_LIMIT) == "1,000,000"
    assert estimated_cost_text(UNBOUNDED_COST) == "unbounded"
