"""Devices that claims hold while their slices change: what is in use stays in use (KEP-5075)."""

from __future__ import annotations

from typing import Any

import pytest

from allot.allocation import (
    Allocated,
    AllocationProblem,
    StepBudget,
    Wording,
    allocate,
    explain,
)
from allot.api.claims import (
    AllocationResult,
    CapacityRequirements,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from allot.api.quantity import Quantity
from allot.api.slices import CapacityRequestPolicy, Device, DeviceCapacity
from allot.features import CONSUMABLE_CAPACITY, DEFAULTS, FeatureGates
from allot.rules import RuleSet
from allot.testing.builders import (
    DRIVER,
    a_claim,
    a_device,
    a_problem,
    a_request,
    an_exact_request,
)

KUBERNETES = DEFAULTS.with_rules(RuleSet.V1_38)
SHARED: dict[str, Any] = {"allow_multiple_allocations": True}


def held(device: str, share: str | None = None, **consumed: str) -> DeviceRequestAllocationResult:
    amounts = {name: Quantity.parse(text) for name, text in consumed.items()}
    return DeviceRequestAllocationResult(
        "r", DRIVER, "node-1", device, share_id=share, consumed_capacity=amounts
    )


def a_shared_problem(
    devices: tuple[Device, ...],
    *results: DeviceRequestAllocationResult,
    gates: FeatureGates = DEFAULTS,
    memory: str = "",
) -> AllocationProblem:
    """One request for one device, after other claims got `results`."""
    allocated = {
        f"default/{number}": AllocationResult(DeviceAllocationResult((result,)))
        for number, result in enumerate(results)
    }
    capacity = CapacityRequirements({"memory": Quantity.parse(memory)}) if memory else None
    claim = a_claim(a_request("gpu", an_exact_request(capacity=capacity)))
    return a_problem(claim, devices=devices, allocated=allocated, gates=gates)


def device_of(problem: AllocationProblem) -> str | None:
    outcome = allocate(problem, StepBudget(1_000), lambda: "share")
    if not isinstance(outcome, Allocated):
        return None
    (result,) = outcome.results[0].devices.results
    return result.device


BOTH = (a_device("d"), a_device("e"))


@pytest.mark.parametrize(("gates", "device"), [(DEFAULTS, "e"), (KUBERNETES, "d")])
def test_a_device_that_was_shared_and_is_dedicated_now(gates: FeatureGates, device: str) -> None:
    """v1.38 asks only who has the whole device, and gives it out again."""
    assert device_of(a_shared_problem(BOTH, held("d", "s"), gates=gates)) == device


def test_it_is_free_when_the_last_share_is_gone() -> None:
    problem = a_shared_problem(BOTH, held("d", "s"), held("d", "t"))
    problem.ledger.remove("default/0")
    assert device_of(problem) == "e"
    problem.ledger.remove("default/1")
    assert device_of(problem) == "d"


@pytest.mark.parametrize("gates", [DEFAULTS, KUBERNETES])
def test_shares_are_in_use_while_the_gate_is_off(gates: FeatureGates) -> None:
    off = gates.switched({CONSUMABLE_CAPACITY: False})

    assert device_of(a_shared_problem(BOTH, held("d", "s"), gates=off)) == "e"


@pytest.mark.parametrize("gates", [DEFAULTS, KUBERNETES])
def test_a_device_that_was_dedicated_and_may_be_shared_now(gates: FeatureGates) -> None:
    devices = (a_device("d", **SHARED), a_device("e", **SHARED))

    assert device_of(a_shared_problem(devices, held("d"), gates=gates)) == "e"


def test_the_explanation_names_the_holder_of_the_share() -> None:
    (report,) = explain(a_shared_problem((a_device("d"),), held("d", "s"))).requests

    assert "held by claim default/0" in Wording().reason(report.refusals[0].reason)


# --- shares that do not say what they consume ---


def eight(default: str = "") -> Device:
    policy = CapacityRequestPolicy(default=Quantity.parse(default)) if default else None
    capacity = {"memory": DeviceCapacity(Quantity.parse("8Gi"), policy)}
    return Device("d", capacity=capacity, allow_multiple_allocations=True)


@pytest.mark.parametrize(
    ("device", "result", "memory", "fits"),
    [
        pytest.param(eight(), held("d", "s"), "1Gi", False, id="in-full"),
        pytest.param(eight("2Gi"), held("d", "s"), "6Gi", True, id="by-default"),
        pytest.param(eight("2Gi"), held("d", "s"), "7Gi", False, id="by-default-and-no-more"),
        pytest.param(eight("2Gi"), held("d", "s", memory="-8Gi"), "7Gi", False, id="negative"),
        pytest.param(eight("2Gi"), held("d", "s", links="1"), "7Gi", False, id="another-capacity"),
        pytest.param(eight("2Gi"), held("d", "s", memory="1Gi"), "7Gi", True, id="stated"),
    ],
)
def test_a_share_without_consumed_capacity(
    device: Device, result: DeviceRequestAllocationResult, memory: str, fits: bool
) -> None:
    assert (device_of(a_shared_problem((device,), result, memory=memory)) == "d") == fits
    assert device_of(a_shared_problem((device,), result, memory=memory, gates=KUBERNETES)) == "d"
