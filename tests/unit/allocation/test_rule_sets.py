"""Rules of allocation that differ from Kubernetes v1.38, both ways."""

from __future__ import annotations

import pytest

from allot.allocation import (
    Allocated,
    AllocationProblem,
    Failed,
    Infeasible,
    StepBudget,
    Wording,
    allocate,
    explain,
)
from allot.allocation.published_names import published_capacity_name
from allot.api.claims import (
    CapacityRequirements,
    DeviceConstraint,
    DeviceDerivedAttribute,
    ResourceClaim,
)
from allot.api.quantity import Quantity
from allot.api.slices import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceCapacity,
)
from allot.features import DEFAULTS, DERIVED_ATTRIBUTES, FeatureGates
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


def on_one_node(
    claim: ResourceClaim, *devices: Device, gates: FeatureGates = DEFAULTS
) -> AllocationProblem:
    return a_problem(claim, devices=devices, gates=gates)


def devices_of(problem: AllocationProblem) -> list[str]:
    outcome = allocate(problem, StepBudget(1_000), lambda: "share")
    assert isinstance(outcome, Allocated), outcome
    return [result.device for result in outcome.results[0].devices.results]


# --- MatchOrDistinct ---

FOUR = tuple(
    a_device(f"d{number}", {"rack": number // 2, "port": number % 2}) for number in range(4)
)


def test_a_stored_constraint_with_both_attributes_is_honoured() -> None:
    """On one rack, on different ports; v1.38 looks at matchAttribute only."""
    both = DeviceConstraint(match_attribute=f"{DRIVER}/rack", distinct_attribute=f"{DRIVER}/port")
    claim = a_claim(a_request("r", an_exact_request(count=2)), constraints=(both,))
    same_port = (FOUR[0], a_device("d0b", {"rack": 0, "port": 0}), *FOUR[1:])

    assert devices_of(on_one_node(claim, *same_port)) == ["d0", "d1"]
    assert devices_of(on_one_node(claim, *same_port, gates=KUBERNETES)) == ["d0", "d0b"]


# --- BadCapacityIsNotEligible ---

RANGE = CapacityRequestPolicy(
    default=Quantity.parse("100m"),
    valid_range=CapacityRequestPolicyRange(min=Quantity.parse("100m"), step=Quantity.parse("100m")),
)


def with_memory(name: str, value: str, policy: CapacityRequestPolicy | None = None) -> Device:
    capacity = {"memory": DeviceCapacity(Quantity.parse(value), policy)}
    return Device(name, capacity=capacity, allow_multiple_allocations=True)


def asking(memory: str) -> ResourceClaim:
    requests = CapacityRequirements({"memory": Quantity.parse(memory)})
    return a_claim(a_request("r", an_exact_request(capacity=requests)))


@pytest.mark.parametrize(
    ("claim", "bad", "why"),
    [
        pytest.param(a_claim(), with_memory("bad", "-1Gi"), "value is negative", id="negative"),
        pytest.param(
            asking("100500u"),
            with_memory("bad", "4", RANGE),
            "not a representable milli value",
            id="finer-than-milli",
        ),
        pytest.param(
            asking("9223372036854775807"),
            with_memory("bad", "9223372036854775807", RANGE),
            "range",
            id="overflow",
        ),
    ],
)
def test_a_bad_capacity_excludes_its_device_only(
    claim: ResourceClaim, bad: Device, why: str
) -> None:
    good = with_memory("good", "9223372036854775807")

    assert devices_of(on_one_node(claim, bad, good)) == ["good"]
    outcome = allocate(
        on_one_node(
            claim,
            bad,
            good,
            gates=DEFAULTS.with_rules(RuleSet.V1_38).switched({"DRAFractionalCapacityRange": True}),
        ),
        StepBudget(1_000),
        lambda: "share",
    )
    assert isinstance(outcome, Failed)
    (report,) = explain(on_one_node(claim, bad)).requests
    reason = Wording().reason(report.refusals[0].reason)
    assert reason.startswith("is not eligible: ")
    assert why in reason


def test_in_mode_all_it_is_not_among_them() -> None:
    claim = a_claim(a_request("r", an_exact_request(allocation_mode="All", count=0)))

    good = with_memory("good", "1Gi")
    assert devices_of(on_one_node(claim, with_memory("bad", "-1Gi"), good)) == ["good"]


# --- FractionalRangesByDefault ---


@pytest.mark.parametrize(("gates", "consumed"), [(DEFAULTS, "300m"), (KUBERNETES, "1")])
def test_fractional_ranges(gates: FeatureGates, consumed: str) -> None:
    """The KEP's formula: min + ceil((request - min) / step) * step."""
    problem = on_one_node(asking("250m"), with_memory("d", "4", RANGE), gates=gates)
    outcome = allocate(problem, StepBudget(1_000), lambda: "share")

    assert isinstance(outcome, Allocated)
    (result,) = outcome.results[0].devices.results
    assert str(result.consumed_capacity["memory"]) == consumed


# --- IgnoreDerivedAttributesWhenOff ---


def deriving(name: str) -> ResourceClaim:
    """Two devices that agree on an attribute, which all devices do if it is derived."""
    derived = (DeviceDerivedAttribute(name, "device.driver"),)
    return a_claim(
        a_request("r", an_exact_request(count=2, derived_attributes=derived)),
        constraints=(DeviceConstraint(match_attribute=name),),
    )


NUMAS = tuple(a_device(f"d{number}", {"numa": number // 2}) for number in range(4))[1:]


def test_while_the_gate_is_off_static_attributes_are_used() -> None:
    qualified = deriving(f"{DRIVER}/numa")
    off = DEFAULTS.switched({DERIVED_ATTRIBUTES: False})

    assert devices_of(on_one_node(qualified, *NUMAS)) == ["d1", "d2"]
    assert devices_of(on_one_node(qualified, *NUMAS, gates=off)) == ["d2", "d3"]


def test_while_the_gate_is_off_bare_names_find_nothing() -> None:
    off = DEFAULTS.switched({DERIVED_ATTRIBUTES: False})
    outcome = allocate(
        on_one_node(deriving("numa"), *NUMAS, gates=off), StepBudget(1_000), lambda: ""
    )

    assert isinstance(outcome, Infeasible)


def test_v1_38_fails_while_the_gate_is_off() -> None:
    off = KUBERNETES.switched({DERIVED_ATTRIBUTES: False})
    outcome = allocate(
        on_one_node(deriving("a.b/numa"), *NUMAS, gates=off), StepBudget(1_000), lambda: ""
    )

    assert isinstance(outcome, Failed)
    assert "cannot handle request with derived attributes, the feature is disabled" in outcome.error


# --- names that were nearly right ---


@pytest.mark.parametrize(
    ("requested", "published", "spelling"),
    [
        (f"{DRIVER}/bandwidth", ["links", "bandwidth"], "bandwidth"),
        ("bandwidth", [f"{DRIVER}/bandwidth"], f"{DRIVER}/bandwidth"),
        ("Bandwidth", ["bandwidth"], "bandwidth"),
        ("bandwidth", ["other.example.com/bandwidth"], "other.example.com/bandwidth"),
        ("memory", ["bandwidth"], ""),
    ],
)
def test_capacity_near_misses(requested: str, published: list[str], spelling: str) -> None:
    assert published_capacity_name(requested, DRIVER, published) == spelling


def test_the_explanation_names_the_spelling_that_works() -> None:
    requests = CapacityRequirements({f"{DRIVER}/memory": Quantity.parse("1Gi")})
    claim = a_claim(a_request("r", an_exact_request(capacity=requests)))
    (report,) = explain(on_one_node(claim, with_memory("d", "8Gi"))).requests

    assert "names are compared literally: did you mean memory?" in Wording().reason(
        report.refusals[0].reason
    )
