"""The slice cache: later searches reuse what earlier ones computed. Counted in lookups of programs, not in seconds."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import replace
from typing import Any
from weakref import ref

import pytest

from allot.allocation import (
    Allocated,
    AllocationOutcome,
    AllocationProblem,
    Failed,
    Infeasible,
    StepBudget,
    allocate,
    devices,
)
from allot.allocation.search import candidates
from allot.allocation.slice_cache import MAX_ROWS, Rows
from allot.api.claims import DeviceConstraint, DeviceDerivedAttribute, ResourceClaim
from allot.api.quantity import Quantity
from allot.api.slices import Counter as SharedCounter
from allot.api.slices import (
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    ResourcePool,
    ResourceSlice,
)
from allot.cel import cel_device
from allot.features import GATES, FeatureGates
from allot.testing.builders import (
    DRIVER,
    a_claim,
    a_problem,
    a_request,
    a_selector,
    a_slice,
    an_exact_request,
)

EVERYTHING = FeatureGates(GATES)
NUMA = f'device.attributes["{DRIVER}"].numa'


def a_numbered_device(number: int) -> Device:
    return Device(name=f"gpu-{number}", attributes={"numa": DeviceAttribute(int_=number // 2)})


def eight_devices() -> ResourceSlice:
    return a_slice(*(a_numbered_device(number) for number in range(8)))


def a_claim_for_two(attributes: int = 1, name: str = "claim") -> ResourceClaim:
    """Two devices that match in all derived attributes."""
    derived = tuple(
        DeviceDerivedAttribute(f"example.com/d{number}", f"{NUMA} + {number}")
        for number in range(attributes)
    )
    exactly = an_exact_request(
        count=2, derived_attributes=derived, selectors=(a_selector(f"{NUMA} >= 0"),)
    )
    constraints = tuple(DeviceConstraint(match_attribute=each.name) for each in derived)
    return a_claim(a_request(exactly=exactly), constraints=constraints, name=name)


def with_every_gate(claim: ResourceClaim, *slices: ResourceSlice) -> AllocationProblem:
    return a_problem(claim, slices=slices, gates=EVERYTHING)


def answer(problem: AllocationProblem) -> AllocationOutcome:
    return allocate(problem, StepBudget(1_000), lambda: "share")


def devices_of(outcome: AllocationOutcome) -> list[str]:
    assert isinstance(outcome, Allocated)
    return [result.device for each in outcome.results for result in each.devices.results]


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a program was looked up, by expression: no expression is evaluated without."""
    counted: Counter[str] = Counter()

    def counting(name: str) -> None:
        compiled = getattr(candidates, name)

        def count(expression: str, *arguments: object) -> object:
            counted[expression] += 1
            return compiled(expression, *arguments)

        monkeypatch.setattr(candidates, name, count)

    counting("compile_selector")
    counting("compile_derived")
    return counted


@pytest.mark.parametrize("attributes", [1, 8])
def test_a_warm_search_evaluates_nothing(lookups: Counter[str], attributes: int) -> None:
    problem = with_every_gate(a_claim_for_two(attributes), eight_devices())
    first = answer(problem)
    assert len(lookups) == attributes + 1
    lookups.clear()

    assert answer(problem) == first
    assert not lookups


def test_another_claim_with_equal_expressions_evaluates_nothing(lookups: Counter[str]) -> None:
    problem = with_every_gate(a_claim_for_two(8), eight_devices())
    answer(problem)
    lookups.clear()

    other = replace(problem, claims=[a_claim_for_two(8, name="other")])
    assert devices_of(answer(other)) == ["gpu-0", "gpu-1"]
    assert not lookups


def test_a_warm_search_takes_the_steps_of_its_literal_twin() -> None:
    derived = with_every_gate(a_claim_for_two(), eight_devices())
    literal_claim = a_claim(
        a_request(exactly=an_exact_request(count=2)),
        constraints=(DeviceConstraint(match_attribute=f"{DRIVER}/numa"),),
    )
    literal = with_every_gate(literal_claim, eight_devices())

    for _ in range(2):
        ours, twins = answer(derived), answer(literal)
        assert isinstance(ours, Allocated)
        assert isinstance(twins, Allocated)
        assert ours.steps == twins.steps
        assert devices_of(ours) == devices_of(twins)


@pytest.mark.parametrize("mode", ["ExactCount", "All"])
def test_slices_that_are_refused_as_a_whole_are_passed_over(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """A claim for one of a few devices does not look at a hundred thousand others each time."""
    slices, per_slice = 50, 64
    others = [
        a_slice(
            *(Device(name=f"other-{number}-{at}") for at in range(per_slice)),
            name=f"others-{number}",
            pool=ResourcePool("a", 1, slices),
        )
        for number in range(slices)
    ]
    wanted = a_slice(Device(name="wanted"), name="wanted", pool=ResourcePool("b", 1, 1))
    exactly = an_exact_request(
        count=1 if mode == "ExactCount" else 0,
        allocation_mode=mode,
        selectors=(a_selector('device.name.startsWith("")'), a_selector('device.name == "wanted"')),
    )
    problem = with_every_gate(a_claim(a_request(exactly=exactly)), *others, wanted)
    asked = 0
    plain = candidates.CandidateRules.is_selectable

    def counting(*arguments: Any) -> bool:
        nonlocal asked
        asked += 1
        return plain(*arguments)

    monkeypatch.setattr(candidates.CandidateRules, "is_selectable", counting)

    assert devices_of(answer(problem)) == ["wanted"]
    assert asked > slices * per_slice
    asked = 0
    assert devices_of(answer(problem)) == ["wanted"]
    assert asked <= 64


@pytest.mark.parametrize("version", ["1.0.0", "one"])
def test_a_selector_of_a_driver_needs_no_preparation_for_cel(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """But a version that is invalid is an error on its device, whatever the expression reads."""
    prepared: list[str] = []

    def noticing(driver: str, name: str, *arguments: Any) -> Any:
        prepared.append(name)
        return cel_device(driver, name, *arguments)

    monkeypatch.setattr(devices, "cel_device", noticing)
    some = [a_numbered_device(number) for number in range(100)]
    some.append(Device(name="last", attributes={"v": DeviceAttribute(version=version)}))
    exactly = an_exact_request(selectors=(a_selector('device.driver == "other.example.com"'),))
    problem = with_every_gate(a_claim(a_request(exactly=exactly)), a_slice(*some))

    outcome = answer(problem)

    assert prepared == ["gpu-0", "last"]
    assert isinstance(outcome, Infeasible if version == "1.0.0" else Failed)


def test_an_updated_slice_is_evaluated_anew() -> None:
    problem = with_every_gate(a_claim_for_two(), eight_devices())
    assert devices_of(answer(problem)) == ["gpu-0", "gpu-1"]

    lonely = Device(name="gpu-0", attributes={"numa": DeviceAttribute(int_=7)})
    hidden = Device(name="gpu-1", attributes={"numa": DeviceAttribute(int_=-1)})
    others = tuple(a_numbered_device(number) for number in range(2, 8))
    problem.inventory.put(a_slice(lonely, hidden, *others))
    assert devices_of(answer(problem)) == ["gpu-2", "gpu-3"]


def test_published_attributes_of_an_updated_slice() -> None:
    claim = a_claim(
        a_request(exactly=an_exact_request(count=2)),
        constraints=(DeviceConstraint(match_attribute=f"{DRIVER}/numa"),),
    )
    unnamed = Device(name="gpu-0")
    problem = with_every_gate(claim, a_slice(unnamed, *map(a_numbered_device, range(1, 4))))
    assert devices_of(answer(problem)) == ["gpu-2", "gpu-3"]
    assert devices_of(answer(problem)) == ["gpu-2", "gpu-3"]

    problem.inventory.put(a_slice(*map(a_numbered_device, range(4))))
    assert devices_of(answer(problem)) == ["gpu-0", "gpu-1"]


def test_errors_are_found_again() -> None:
    broken = DeviceDerivedAttribute("example.com/broken", f'device.attributes["{DRIVER}"].gone + 1')
    claim = a_claim(
        a_request(exactly=an_exact_request(count=2, derived_attributes=(broken,))),
        constraints=(DeviceConstraint(match_attribute=broken.name),),
    )
    problem = with_every_gate(claim, eight_devices())

    first = answer(problem)
    assert isinstance(first, Failed)
    assert "no such key: gone" in first.error
    assert answer(problem) == first


def test_memory_is_bounded() -> None:
    rows: Rows[bool] = Rows(2)
    for number in range(5 * MAX_ROWS):
        rows.remember(f"device.driver == '{number}'", number % 2, number % 3 == 0)

    assert len(rows) <= MAX_ROWS
    last = 5 * MAX_ROWS - 1
    assert rows[f"device.driver == '{last}'"] == [None, last % 3 == 0]


def test_devices_go_with_their_slices_without_the_garbage_collector() -> None:
    counter = {"slots": SharedCounter(Quantity.of(8))}
    partition = Device(name="gpu-0", consumes_counters=(DeviceCounterConsumption("gpu", counter),))
    pool = ResourcePool("node-1", 1, 2)
    problem = with_every_gate(
        a_claim(),
        a_slice(partition, pool=pool),
        a_slice(name="counters", pool=pool, shared_counters=(CounterSet("gpu", counter),)),
    )
    gc.disable()
    try:
        assert devices_of(answer(problem)) == ["gpu-0"]
        device = ref(problem.inventory.view(problem.node).devices[0])
        del problem
        assert device() is None
    finally:
        gc.enable()
