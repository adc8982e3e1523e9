"""Conflicts within their budget, said in words, and transferred to nodes that look alike."""

from __future__ import annotations

from typing import Final

import pytest

from allot.allocation import (
    AllocationProblem,
    Proof,
    StepBudget,
    Wording,
    allocate,
    explain,
)
from allot.allocation.explain import conflicts
from allot.allocation.explain.amounts import readable, readable_need
from allot.allocation.explain.conflicts import find_conflict
from allot.allocation.explain.transfer import transferred
from allot.api.claims import (
    DeviceConstraint,
    ResourceClaim,
)
from allot.api.quantity import Quantity
from allot.features import GATES, FeatureGates
from allot.testing.builders import (
    DRIVER,
    a_claim,
    a_device,
    a_problem,
    a_request,
    an_allocation,
    an_alternative,
    an_exact_request,
)
from tests.unit.allocation.bombs import BOMBS

EVERYTHING: Final = FeatureGates(GATES)
NUMA: Final = f"{DRIVER}/numa"


def with_numa_nodes(
    claim: ResourceClaim, *, node: str = "node-1", numa: tuple[int, ...], held: dict[str, str]
) -> AllocationProblem:
    devices = [a_device(f"gpu-{number}", {"numa": value}) for number, value in enumerate(numa)]
    allocated = {holder: an_allocation(device, pool=node) for device, holder in held.items()}
    return a_problem(claim, devices=devices, allocated=allocated, node=node, gates=EVERYTHING)


def pairs(number: int) -> AllocationProblem:
    """Requests for two devices each, of which there is one too few."""
    requests = [a_request(f"r{each}", an_exact_request(count=2)) for each in range(number)]
    return with_numa_nodes(a_claim(*requests), numa=(0,) * (2 * number - 1), held={})


# --- budgets ---


def test_a_budget_that_ends_before_anything_is_known() -> None:
    explanation = explain(pairs(4), StepBudget(9))

    assert explanation.conflict is not None
    assert explanation.conflict.proof is Proof.UNPROVEN
    assert explanation.conflict.requests == ()
    assert not any(report.in_conflict for report in explanation.requests)
    assert (
        Wording()
        .conflict(explanation)
        .startswith("it is not proven which requests cannot be satisfied together")
    )


def test_a_budget_that_ends_while_members_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "MAX_SUBPROBLEMS", 6)
    explanation = explain(pairs(4))

    assert explanation.conflict is not None
    assert explanation.conflict.proof is Proof.REDUCIBLE
    text = Wording().conflict(explanation)
    assert text.endswith("(not proven: fewer of them may be enough)")


def test_an_irreducible_set_is_kept_if_the_budget_ends_while_a_shorter_one_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conflicts, "MAX_SUBPROBLEMS", 10)
    found = find_conflict(pairs(4))

    assert found is not None
    assert found.proof is Proof.IRREDUCIBLE
    assert len(found.members) == 4


@pytest.mark.parametrize("name", BOMBS)
def test_proofs_keep_to_their_steps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    solve = allocate

    def counted(*arguments: object, **options: object) -> object:
        nonlocal taken
        outcome = solve(*arguments, **options)  # type: ignore[arg-type]
        taken += outcome.steps
        return outcome

    monkeypatch.setattr(conflicts, "allocate", counted)
    find_conflict(BOMBS[name](), StepBudget(2_000))

    assert taken <= 2_000


# --- nodes that look alike ---


def test_what_is_found_on_one_node_is_said_of_another() -> None:
    claim = a_claim(
        a_request("a", an_exact_request(count=2)),
        a_request("b", an_exact_request(count=2)),
        constraints=(DeviceConstraint(match_attribute=NUMA),),
    )
    numa = (0, 0, 1, 0, 0, 1)
    one = with_numa_nodes(
        claim, numa=numa, held={"gpu-0": "default/x", "gpu-1": "default/y", "gpu-3": "default/z"}
    )
    other = with_numa_nodes(
        claim,
        node="node-2",
        numa=numa,
        held={"gpu-0": "default/p", "gpu-1": "default/q", "gpu-3": "default/r"},
    )

    assert transferred(explain(one), one, other) == explain(other)


# --- words ---


@pytest.mark.parametrize(
    ("amount", "left", "needed"),
    [
        ("20Gi", "20Gi", "20Gi"),
        ("1500m", "1500m", "1500m"),
        ("123456789", "123M", "124M"),
        ("1500", "1500", "1500"),
    ],
)
def test_amounts_are_short_and_never_promise_too_much(amount: str, left: str, needed: str) -> None:
    quantity = Quantity.parse(amount)

    assert Quantity.parse(readable(quantity)) <= quantity <= Quantity.parse(readable_need(quantity))
    assert (readable(quantity), readable_need(quantity)) == (left, needed)


def test_bytes_are_told_in_binary_units() -> None:
    left = Quantity.of(5360393360, "BinarySI")

    assert (readable(left), readable_need(left)) == ("5112Mi", "5113Mi")


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        (("team/x",), "held by claim team/x"),
        (("team/x", "team/y"), "held by claims team/x, team/y"),
        (("other/x",), "held by a claim in another namespace"),
        (("other/x", "more/y"), "held by 2 claims in other namespaces"),
        (("team/x", "other/y"), "held by claim team/x and 1 in other namespaces"),
    ],
)
def test_claims_of_other_namespaces_are_counted_not_named(
    claims: tuple[str, ...], text: str
) -> None:
    assert Wording("team").held_by(claims) == text


# --- alternatives ---


def test_every_alternative_gets_its_own_steps() -> None:
    """Without that, going through the ways to give 8 devices to the first one would take all of them."""
    alternatives = tuple(an_alternative(f"a{count}", count=count) for count in (12, 11, 10, 9))
    claim = a_claim(a_request("r", first_available=alternatives))

    reports = explain(with_numa_nodes(claim, numa=(0,) * 8, held={})).requests

    assert [(each.request, each.found, each.wanted) for each in reports] == [
        ("r/a12", 8, 12),
        ("r/a11", 8, 11),
        ("r/a10", 8, 10),
        ("r/a9", 8, 9),
    ]
    assert all(not each.problem for each in reports)
