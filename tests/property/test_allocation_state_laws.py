"""Laws of what lasts: same answers, untouched inputs, a ledger and an inventory without a trace."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.allocation import Allocated, AllocationProblem, allocate
from allot.api.decoding import to_builtin
from tests.property.test_allocation_laws import BUDGET, answer_of, counting_ids, small_problems


@settings(max_examples=100, deadline=None)
@given(small_problems())
def test_asking_twice_gives_the_same_answer_and_changes_nothing(problem: AllocationProblem) -> None:
    def written() -> bytes:
        return msgspec.json.encode(
            [list(problem.inventory.slices()), problem.claims, problem.classes],
            enc_hook=to_builtin,
        )

    before = written()
    first = allocate(problem, BUDGET, counting_ids())
    second = allocate(problem, BUDGET, counting_ids())

    assert first == second
    assert first.steps == second.steps
    assert written() == before


@settings(max_examples=100, deadline=None)
@given(small_problems(), st.randoms(use_true_random=False))
def test_a_ledger_returns_to_where_it_was(problem: AllocationProblem, random: Any) -> None:
    """Whatever is added and removed, in any order, leaves no trace."""
    ledger = problem.ledger
    start = ledger.snapshot()
    outcome = allocate(problem, BUDGET, counting_ids())
    if not isinstance(outcome, Allocated):
        return
    holders = [f"default/new-{number}" for number in range(len(outcome.results))]
    for holder, result in zip(holders, outcome.results, strict=True):
        ledger.add(holder, result)
    random.shuffle(holders)
    for holder in holders:
        ledger.remove(holder)

    assert ledger.snapshot() == start


@settings(max_examples=100, deadline=None)
@given(small_problems())
def test_an_inventory_built_in_pieces_is_the_same(problem: AllocationProblem) -> None:
    """Slices that came, went and came back leave the inventory as if nothing had happened."""
    inventory = problem.inventory
    first = answer_of(allocate(problem, BUDGET, counting_ids()))
    for slice_ in list(inventory.slices()):
        inventory.remove(slice_.metadata.name)
        inventory.put(slice_)

    assert answer_of(allocate(problem, BUDGET, counting_ids())) == first
