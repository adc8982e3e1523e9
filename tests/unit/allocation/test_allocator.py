"""From the question to its answer, explanation and proposals."""

from __future__ import annotations

from typing import Any

import pytest

from allot.allocation import (
    Abandoned,
    Allocated,
    AllocationOutcome,
    AllocationProblem,
    Failed,
    Infeasible,
    StepBudget,
    Wording,
    allocate,
    explain,
    proposals,
)
from allot.allocation.explain.phrases import pool_text
from allot.api.claims import (
    CapacityRequirements,
    DeviceConstraint,
    DeviceDerivedAttribute,
    ResourceClaim,
)
from allot.api.classes import (
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from allot.api.meta import ObjectMeta
from allot.api.quantity import Quantity
from allot.api.resource import EXISTS, NO_SCHEDULE, DeviceTaint, DeviceToleration
from allot.api.slices import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    ResourcePool,
    ResourceSlice,
)
from allot.cel import compile_derived
from allot.features import GATES, FeatureGates
from allot.testing.builders import (
    DRIVER,
    GPU,
    a_claim,
    a_device,
    a_problem,
    a_request,
    a_selector,
    a_slice,
    an_allocation,
    an_alternative,
    an_exact_request,
)
from tests.unit.allocation.bombs import BOMBS

EVERYTHING = FeatureGates(GATES)
BUDGET = StepBudget(10_000)
PLACE = "claim default/claim, request gpu"
AT_MOST_40GI = Device(
    name="gpu-0",
    allow_multiple_allocations=True,
    capacity={
        "memory": DeviceCapacity(
            Quantity.parse("80Gi"),
            CapacityRequestPolicy(
                default=Quantity.parse("10Gi"),
                valid_range=CapacityRequestPolicyRange(
                    min=Quantity.parse("10Gi"), max=Quantity.parse("40Gi")
                ),
            ),
        )
    },
)


def a_gpu_problem(
    *claims: ResourceClaim,
    devices: tuple[Device, ...] = (a_device("gpu-0"), a_device("gpu-1")),
    held: dict[str, str] | None = None,
    slices: tuple[ResourceSlice, ...] = (),
) -> AllocationProblem:
    """With every gate; `held` are devices by the claim that has them."""
    allocated = {claim: an_allocation(device) for claim, device in (held or {}).items()}
    return a_problem(*claims, devices=devices, slices=slices, allocated=allocated, gates=EVERYTHING)


def answer(problem: AllocationProblem, **options: Any) -> AllocationOutcome:
    return allocate(problem, BUDGET, lambda: "share", **options)


def devices_of(outcome: AllocationOutcome) -> list[str]:
    assert isinstance(outcome, Allocated)
    return [result.device for each in outcome.results for result in each.devices.results]


# --- outcomes ---


def test_the_first_device_that_is_free() -> None:
    assert devices_of(answer(a_gpu_problem(held={"default/x": "gpu-0"}))) == ["gpu-1"]


def test_all_claims_or_none() -> None:
    three = [a_claim(name=f"claim-{number}") for number in range(3)]

    assert answer(a_gpu_problem(*three)) == Infeasible()


def test_an_unknown_class_is_an_error() -> None:
    claim = a_claim(a_request(exactly=an_exact_request(device_class_name="x")))

    assert answer(a_gpu_problem(claim)) == Failed(
        f'{PLACE}: could not retrieve device class x: deviceclass.resource.k8s.io "x" not found'
    )


def test_an_invalid_pool_is_mentioned_when_nothing_fits() -> None:
    assert answer(a_gpu_problem(devices=(a_device("x"), a_device("x")))) == Infeasible(
        invalid_pools=True
    )


def test_a_search_that_is_given_up_says_how_far_it_came() -> None:
    claims = [a_claim(name=f"claim-{number}") for number in range(2)]

    outcome = allocate(a_gpu_problem(*claims), StepBudget(1), lambda: "share")

    assert outcome == Abandoned(steps=1, requests_satisfied=1)


def test_a_deep_search_needs_no_recursion() -> None:
    devices = tuple(a_device(f"gpu-{number:04}") for number in range(2_000))
    claims = [
        a_claim(a_request(exactly=an_exact_request(count=20)), name=f"claim-{number}")
        for number in range(100)
    ]

    assert len(devices_of(answer(a_gpu_problem(*claims, devices=devices)))) == 2_000


def test_a_claim_that_gets_too_many_devices_goes_back_to_the_choice() -> None:
    """v1.38 takes 43 steps: which devices are picked makes no difference."""
    outcome = answer(BOMBS["limit"]())

    assert outcome == Infeasible()
    assert outcome.steps <= 43


# --- explanation ---


def reasons(problem: AllocationProblem) -> list[str]:
    return [
        Wording().reason(refusal.reason)
        for report in explain(problem).requests
        for refusal in report.refusals
    ]


def proposed(problem: AllocationProblem) -> list[str]:
    return [Wording().change(proposal.change) for proposal in proposals(problem, BUDGET)]


@pytest.mark.parametrize(
    ("exactly", "device", "reason"),
    [
        pytest.param(
            an_exact_request(
                selectors=(a_selector(f'device.attributes["{DRIVER}"].model == "b200"'),)
            ),
            a_device("gpu-0", {"model": "h100"}),
            "claim default/claim: selector #0 is false:"
            f' device.attributes["{DRIVER}"].model == "b200" (model = "h100")',
            id="selector",
        ),
        pytest.param(
            GPU,
            a_device("gpu-0", taints=(DeviceTaint("bad", "very", NO_SCHEDULE),)),
            "taint bad=very:NoSchedule is not tolerated",
            id="taint",
        ),
        pytest.param(
            an_exact_request(capacity=CapacityRequirements({"memory": Quantity.parse("90Gi")})),
            a_device("gpu-0", capacity={"memory": "80Gi"}),
            "capacity memory: 90Gi requested, 80Gi of 80Gi left",
            id="capacity",
        ),
        pytest.param(
            an_exact_request(capacity=CapacityRequirements({"cores": Quantity.parse("1")})),
            a_device("gpu-0", capacity={"memory": "80Gi"}),
            "has no capacity cores, of which 1 is requested",
            id="no-such-capacity",
        ),
        pytest.param(
            an_exact_request(capacity=CapacityRequirements({"memory": Quantity.parse("90Gi")})),
            AT_MOST_40GI,
            "its request policy does not allow memory=90Gi (memory: from 10Gi to 40Gi)",
            id="policy",
        ),
    ],
)
def test_reasons_name_the_values_that_decided(exactly: Any, device: Device, reason: str) -> None:
    problem = a_gpu_problem(a_claim(a_request(exactly=exactly)), devices=(device,))

    assert answer(problem) == Infeasible()
    assert reasons(problem) == [reason]


def test_holders_are_named() -> None:
    problem = a_gpu_problem(held={"default/x": "gpu-0", "default/y": "gpu-1"})

    assert reasons(problem) == ["held by claim default/x", "held by claim default/y"]


def test_a_held_device_that_would_not_do_is_refused_for_that() -> None:
    h100 = an_exact_request(selectors=(a_selector(f'device.attributes["{DRIVER}"].model == "h"'),))
    problem = a_gpu_problem(
        a_claim(a_request(exactly=h100)),
        devices=(
            a_device("gpu-0", {"model": "a"}),
            a_device("gpu-1", {"model": "h"}),
            a_device("x"),
        ),
        held={"default/x": "gpu-0", "default/y": "gpu-1", "default/z": "x"},
    )

    other_model, held, unknown = reasons(problem)

    assert "selector #0 is false" in other_model
    assert held == "held by claim default/y"
    assert unknown == "held by claim default/z", "that it has no model was never found out"


def test_a_short_counter_is_named() -> None:
    two = DeviceCounterConsumption("set", {"slots": Counter(Quantity.of(2))})
    pool = ResourcePool("node-1", 1, 2)
    partitions = tuple(a_device(f"gpu-{n}", consumes_counters=(two,)) for n in range(2))
    budget = CounterSet("set", {"slots": Counter(Quantity.of(3))})
    problem = a_gpu_problem(
        a_claim(a_request(exactly=an_exact_request(count=2))),
        slices=(
            a_slice(*partitions, name="devices", pool=pool),
            a_slice(name="counters", pool=pool, devices=None, shared_counters=(budget,)),
        ),
    )

    assert reasons(problem) == ["counter set/slots: 2 needed, 1 of 3 left"]


def test_conflicting_values_and_devices_are_named() -> None:
    claim = a_claim(
        a_request(exactly=an_exact_request(count=2)),
        constraints=(DeviceConstraint(match_attribute=f"{DRIVER}/numa"),),
    )
    devices = (a_device("gpu-0", {"numa": 0}), a_device("gpu-1", {"numa": 1}))

    assert reasons(a_gpu_problem(claim, devices=devices)) == [
        f"attribute {DRIVER}/numa = 1 must match: gpu-0 has 0"
    ]


def test_devices_refused_for_one_reason_are_one_line() -> None:
    taint = DeviceTaint("bad", "", NO_SCHEDULE)
    devices = tuple(a_device(f"gpu-{number}", taints=(taint,)) for number in range(1_000))

    (report,) = explain(a_gpu_problem(devices=devices)).requests

    (refusal,) = report.refusals
    assert Wording().refusal(refusal) == (
        "gpu-0, gpu-1, gpu-2 and 997 more: taint bad:NoSchedule is not tolerated"
    )


def test_unusable_pools_are_listed() -> None:
    (pool,) = explain(a_gpu_problem(devices=(a_device("x"), a_device("x")))).pools

    assert pool_text(pool) == f"pool {DRIVER}/node-1 is invalid: duplicate device x"


# --- proposals ---


@pytest.mark.parametrize(
    ("problem", "change"),
    [
        pytest.param(
            a_gpu_problem(a_claim(a_request(exactly=an_exact_request(count=3)))),
            f"{PLACE}: ask for 2 devices instead of 3",
            id="count",
        ),
        pytest.param(
            a_gpu_problem(
                a_claim(
                    a_request(
                        exactly=an_exact_request(
                            capacity=CapacityRequirements({"memory": Quantity.parse("90Gi")})
                        )
                    )
                ),
                devices=(a_device("gpu-0", capacity={"memory": "80Gi"}),),
            ),
            f"{PLACE}: ask for 80Gi of memory instead of 90Gi",
            id="capacity",
        ),
        pytest.param(
            a_gpu_problem(
                a_claim(
                    a_request(
                        exactly=an_exact_request(
                            capacity=CapacityRequirements({"memory": Quantity.parse("90Gi")})
                        )
                    )
                ),
                devices=(AT_MOST_40GI,),
            ),
            f"{PLACE}: ask for 40Gi of memory instead of 90Gi",
            id="policy",
        ),
        pytest.param(
            a_gpu_problem(
                a_claim(a_request(exactly=an_exact_request(selectors=(a_selector("false"),))))
            ),
            f"{PLACE}: do without selector #0 (false)",
            id="selector",
        ),
        pytest.param(
            a_gpu_problem(
                a_claim(
                    a_request(exactly=an_exact_request(count=2)),
                    constraints=(DeviceConstraint(match_attribute=f"{DRIVER}/numa"),),
                )
            ),
            f"claim default/claim: do not require {DRIVER}/numa to match (constraint #0)",
            id="constraint",
        ),
        pytest.param(
            a_gpu_problem(held={"default/x": "gpu-0", "default/y": "gpu-1"}),
            "release claim default/x",
            id="release",
        ),
        pytest.param(
            a_gpu_problem(devices=(a_device(taints=(DeviceTaint("bad", "", NO_SCHEDULE),)),)),
            f"{PLACE}: tolerate the taint bad:NoSchedule",
            id="taint",
        ),
        pytest.param(
            a_gpu_problem(
                a_claim(
                    a_request(
                        first_available=(
                            an_alternative("typo", selectors=(a_selector("nope"),)),
                            an_alternative("fine"),
                        )
                    )
                )
            ),
            "claim default/claim: use only alternative gpu/fine",
            id="alternative",
        ),
        pytest.param(
            a_gpu_problem(a_claim(a_request(exactly=an_exact_request(count=4)))),
            f"2 more devices like gpu-0 of {DRIVER} on node node-1",
            id="more-devices",
        ),
    ],
)
def test_proposals_make_it_fit(problem: AllocationProblem, change: str) -> None:
    assert not isinstance(answer(problem), Allocated)
    assert change in proposed(problem)


def a_taint_rule(name: str, device: str | None = None) -> DeviceTaintRule:
    selector = DeviceTaintSelector(driver=DRIVER, device=device)
    taint = DeviceTaint("maintenance", "", NO_SCHEDULE)
    return DeviceTaintRule(ObjectMeta(name=name), DeviceTaintRuleSpec(selector, taint))


def test_more_devices_do_not_help_where_a_rule_taints_them() -> None:
    problem = a_gpu_problem()
    problem.inventory.put_taint_rule(a_taint_rule("r"))

    assert proposed(problem) == [f"{PLACE}: tolerate the taint maintenance:NoSchedule"]


@pytest.mark.parametrize("tolerated", [False, True])
def test_a_device_like_a_tainted_one_is_tainted(tolerated: bool) -> None:
    taint = DeviceTaint("bad", "", NO_SCHEDULE)
    tolerations = (DeviceToleration("bad", EXISTS, "", NO_SCHEDULE),) if tolerated else ()
    problem = a_gpu_problem(
        a_claim(a_request(exactly=an_exact_request(tolerations=tolerations))),
        devices=(a_device("gpu-0", taints=(taint,)),),
        held={"default/x": "gpu-0"},
    )

    more = f"1 more device like gpu-0 of {DRIVER} on node node-1"
    assert (more in proposed(problem)) == tolerated


def test_a_device_that_a_rule_taints_is_not_the_model_of_more() -> None:
    problem = a_gpu_problem(held={"default/x": "gpu-0", "default/y": "gpu-1"})
    problem.inventory.put_taint_rule(a_taint_rule("maintenance", device="gpu-0"))

    assert f"1 more device like gpu-1 of {DRIVER} on node node-1" in proposed(problem)
    assert not any("like gpu-0" in change for change in proposed(problem))


def test_reasons_name_the_rule_that_taints_a_device() -> None:
    taint = DeviceTaint("maintenance", "", NO_SCHEDULE)
    problem = a_gpu_problem(devices=(a_device("gpu-0"), a_device("gpu-1", taints=(taint,))))
    problem.inventory.put_taint_rule(a_taint_rule("elsewhere", device="gpu-7"))
    problem.inventory.put_taint_rule(a_taint_rule("repair", device="gpu-0"))

    assert reasons(problem) == [
        "taint maintenance:NoSchedule is not tolerated (from DeviceTaintRule repair)",
        "taint maintenance:NoSchedule is not tolerated",
    ]


def test_looking_for_what_would_help_can_be_ended() -> None:
    problem = a_gpu_problem(a_claim(a_request(exactly=an_exact_request(count=4))))

    assert proposals(problem, BUDGET, lambda: True) == ()


def test_smaller_changes_come_first() -> None:
    problem = a_gpu_problem(a_claim(a_request(exactly=an_exact_request(count=4))))

    sizes = [proposal.size for proposal in proposals(problem, BUDGET)]

    assert sizes == sorted(sizes)


# --- expressions ---


def test_a_derived_attribute_is_evaluated_once_per_device_and_expression() -> None:
    expression = f'device.attributes["{DRIVER}"].numa * 1000 + 7'
    derived = (DeviceDerivedAttribute("example.com/x", expression),)
    requests = [
        a_request(f"gpu-{number}", exactly=an_exact_request(derived_attributes=derived))
        for number in range(3)
    ]
    constraints = (DeviceConstraint(match_attribute="example.com/x"),)
    devices = tuple(a_device(f"gpu-{number}", {"numa": number % 2}) for number in range(6))

    outcome = answer(a_gpu_problem(a_claim(*requests, constraints=constraints), devices=devices))

    assert devices_of(outcome) == ["gpu-0", "gpu-2", "gpu-4"]
    assert compile_derived(expression).evaluations == 2, "once for each value it reads"


def test_selectors_are_not_evaluated_on_devices_in_use() -> None:
    """There an expression could fail, and the failure would be for nothing."""
    failing = a_selector(f'device.attributes["{DRIVER}"].model == "h100"')
    claim = a_claim(a_request(exactly=an_exact_request(selectors=(failing,))))
    devices = (a_device("gpu-0"), a_device("gpu-1", {"model": "h100"}))

    assert isinstance(answer(a_gpu_problem(claim, devices=devices)), Failed)
    held = a_gpu_problem(claim, devices=devices, held={"default/x": "gpu-0"})
    assert devices_of(answer(held)) == ["gpu-1"]
