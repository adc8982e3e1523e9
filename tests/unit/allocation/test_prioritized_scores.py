from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from allot.allocation import (
    Allocated,
    AllocationProblem,
    ChosenAlternative,
    Inventory,
    Ledger,
    StepBudget,
    TargetNode,
    allocate,
    chosen_alternatives,
    has_alternatives,
    normalized_prioritized_scores,
    prioritized_list_score,
)
from allot.api.claims import DeviceRequest, ResourceClaim
from allot.features import DEFAULTS
from allot.testing.builders import (
    DRIVER,
    GPU,
    a_claim,
    a_class,
    a_device,
    a_request,
    a_slice,
    an_allocation,
    an_alternative,
)


def a_choice(name: str, count: int = 8) -> DeviceRequest:
    """A request with alternatives `a0`, `a1` and so on, the best first."""
    return a_request(
        name, first_available=tuple(an_alternative(f"a{index}") for index in range(count))
    )


def score(claim: ResourceClaim, *chosen: str) -> int:
    """The score of a claim whose requests got these alternatives."""
    results = [
        result
        for request in chosen
        for result in an_allocation("gpu-0", request=request).devices.results
    ]
    allocation = an_allocation()
    devices = type(allocation.devices)(tuple(results))
    return prioritized_list_score([claim], [type(allocation)(devices=devices)])


@pytest.mark.parametrize(
    ("claim", "chosen", "expected"),
    [
        pytest.param(a_claim(a_request("r", GPU)), ["r"], 0, id="no-alternatives"),
        pytest.param(a_claim(a_choice("r")), ["r/a0"], 8, id="the-first"),
        pytest.param(a_claim(a_choice("r")), ["r/a1"], 7, id="the-second"),
        pytest.param(a_claim(a_choice("r")), ["r/a7"], 1, id="the-last-of-eight"),
        pytest.param(a_claim(a_choice("r")), ["r/a1", "r/a1"], 7, id="two-devices-count-once"),
        pytest.param(
            a_claim(a_choice("r"), a_choice("s")), ["r/a0", "s/a1"], 15, id="summed-over-requests"
        ),
        pytest.param(
            a_claim(a_choice("r"), a_request("s", GPU)), ["r/a2", "s"], 6, id="exactly-adds-nothing"
        ),
        pytest.param(
            a_claim(a_choice("r"), a_choice("s")),
            ["s/a0", "r/a3"],
            13,
            id="in-whatever-order-results-come",
        ),
    ],
)
def test_the_score_of_a_claim(claim: ResourceClaim, chosen: list[str], expected: int) -> None:
    assert score(claim, *chosen) == expected


def test_scores_are_summed_over_claims() -> None:
    claims = [a_claim(a_choice("r")), a_claim(a_choice("r"))]
    results = [an_allocation("x", request="r/a0"), an_allocation("y", request="r/a2")]

    assert prioritized_list_score(claims, results) == 14


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param([15, 14, 13], [100, 50, 0], id="three-nodes"),
        pytest.param([8, 1], [100, 0], id="two-nodes"),
        pytest.param([8, 5, 1], [100, 57, 0], id="rounded-down"),
        pytest.param([7, 7], [100, 100], id="all-the-same"),
        pytest.param([0, 0], [0, 0], id="nothing-to-prefer"),
        pytest.param([], [], id="no-nodes"),
    ],
)
def test_the_best_gets_100_and_the_worst_0(raw: list[int], expected: list[int]) -> None:
    assert normalized_prioritized_scores(raw) == expected


def test_only_claims_with_alternatives_are_worth_a_score() -> None:
    assert has_alternatives([a_claim(), a_claim(a_choice("r"))])
    assert not has_alternatives([a_claim()])
    assert not has_alternatives([])


def test_which_alternative_each_request_got() -> None:
    claim = a_claim(a_choice("r"), a_request("s", GPU), a_choice("t"))
    results = [
        result
        for request in ("r/a0", "s", "t/a3")
        for result in an_allocation("gpu-0", request=request).devices.results
    ]
    allocation = an_allocation()
    devices = type(allocation.devices)(tuple(results))

    found = list(chosen_alternatives(claim, type(allocation)(devices=devices)))

    assert found == [ChosenAlternative("r", "a0", 0), ChosenAlternative("t", "a3", 3)]


def a_shape(claim: ResourceClaim, gpus: int) -> AllocationProblem:
    """The claim on an empty node with so many GPUs."""
    devices = [a_device(f"gpu-{index}") for index in range(gpus)]
    slices = [a_slice(*devices, name="shape", node="shape")] if devices else []
    return AllocationProblem(
        node=TargetNode("shape"),
        claims=[claim],
        classes={DRIVER: a_class(DRIVER)},
        inventory=Inventory(DEFAULTS, slices),
        ledger=Ledger(DEFAULTS),
    )


def test_an_autoscaler_can_compare_node_shapes() -> None:
    """The public functions alone say which of two empty nodes a pod would be better off with."""
    claim = a_claim(
        a_request(
            "gpu", first_available=(an_alternative("four", count=4), an_alternative("one", count=1))
        )
    )
    scores = []
    for gpus in (1, 4):
        outcome = allocate(a_shape(claim, gpus), StepBudget(1000), lambda: "share")
        assert isinstance(outcome, Allocated)
        scores.append(prioritized_list_score([claim], outcome.results))

    assert scores == [7, 8]
    assert normalized_prioritized_scores(scores) == [0, 100]


def test_the_example_for_autoscalers_in_the_documentation() -> None:
    page = Path(__file__).parents[3] / "docs" / "prioritized-list.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - our own
    claim = a_claim(
        a_request("gpu", first_available=(an_alternative("two", count=2), an_alternative("one")))
    )

    ranked = names["rank"]([a_shape(claim, gpus) for gpus in (1, 0, 2)])

    assert ranked == [0, -1, 100]
