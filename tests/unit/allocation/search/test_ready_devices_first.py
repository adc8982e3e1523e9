"""KEP-5007, goal 3: devices that can be used at once are tried before those that must be made ready."""

from __future__ import annotations

import pytest

from allot.allocation import (
    Allocated,
    AllocationProblem,
    Inventory,
    Ledger,
    StepBudget,
    TargetNode,
    allocate,
)
from allot.api.claims import ResourceClaim
from allot.api.resource import ALL
from allot.api.slices import Device, ResourcePool, ResourceSlice
from allot.features import DEFAULTS, FeatureGates
from allot.rules import READY_DEVICES_FIRST
from allot.testing.builders import (
    DRIVER,
    a_claim,
    a_class,
    a_device,
    a_request,
    a_selector,
    a_slice,
    an_alternative,
    an_exact_request,
)

AS_V1_38 = DEFAULTS.switched({READY_DEVICES_FIRST: False})


def slow(name: str) -> Device:
    return a_device(name, binding_conditions=("Attached",), binding_failure_conditions=("Failed",))


def a_pool(name: str, *devices: Device) -> ResourceSlice:
    return a_slice(*devices, name=name, node="node", pool=ResourcePool(name, 1, 1))


def got(claim: ResourceClaim, *slices: ResourceSlice, gates: FeatureGates = DEFAULTS) -> list[str]:
    problem = AllocationProblem(
        node=TargetNode("node"),
        claims=[claim],
        classes={DRIVER: a_class(DRIVER)},
        inventory=Inventory(gates, slices),
        ledger=Ledger(gates),
    )
    outcome = allocate(problem, StepBudget(10_000), lambda: "share")
    assert isinstance(outcome, Allocated)
    return [result.device for result in outcome.results[0].devices.results]


def wanting(count: int) -> ResourceClaim:
    return a_claim(a_request("r", an_exact_request(count=count)))


MIXED = a_pool("m", slow("m0"), a_device("m1"), slow("m2"), a_device("m3"))
PLAIN = a_pool("z", a_device("z0"), a_device("z1"))
SLOW = a_pool("a", slow("a0"))


@pytest.mark.parametrize(
    ("slices", "ready_first", "as_v1_38"),
    [
        pytest.param([MIXED], "m1 m3 m0 m2", "m0 m1 m2 m3", id="within-a-slice"),
        pytest.param(
            [MIXED, PLAIN], "z0 z1 m1 m3 m0 m2", "z0 z1 m0 m1 m2 m3", id="pools-keep-their-order"
        ),
        pytest.param(
            [SLOW, MIXED, PLAIN],
            "z0 z1 m1 m3 a0 m0 m2",
            "z0 z1 a0 m0 m1 m2 m3",
            id="stable-within-the-order-of-v1.38",
        ),
        pytest.param([PLAIN], "z0 z1", "z0 z1", id="no-conditions"),
        pytest.param([SLOW], "a0", "a0", id="nothing-else"),
    ],
)
def test_the_order_of_devices(slices: list[ResourceSlice], ready_first: str, as_v1_38: str) -> None:
    for gates, order in ((DEFAULTS, ready_first), (AS_V1_38, as_v1_38)):
        wanted = order.split()
        for count in range(1, len(wanted) + 1):
            assert got(wanting(count), *slices, gates=gates) == wanted[:count]


@pytest.mark.parametrize("ready", range(1, 8))
def test_devices_between_those_of_a_refused_slice_are_seen(ready: int) -> None:
    """Slices whose devices are all refused are passed over, but not what comes between their devices."""
    apart = a_pool(
        "m", *(a_device(f"m{at}") if ready & 1 << at else slow(f"m{at}") for at in range(3))
    )
    others = a_pool("n", a_device("n0"), slow("n1"))
    selectors = (a_selector('device.name.startsWith("n")'),)
    problem = AllocationProblem(
        node=TargetNode("node"),
        claims=[a_claim(a_request("r", an_exact_request(count=2, selectors=selectors)))],
        classes={DRIVER: a_class(DRIVER)},
        inventory=Inventory(DEFAULTS, [apart, others]),
        ledger=Ledger(DEFAULTS),
    )

    for _ in range(2):  # the second time it is known
        outcome = allocate(problem, StepBudget(100), lambda: "share")
        assert isinstance(outcome, Allocated)
        assert [each.device for each in outcome.results[0].devices.results] == ["n0", "n1"]


def test_mode_all_takes_them_all() -> None:
    claim = a_claim(a_request("r", an_exact_request(allocation_mode=ALL, count=0)))

    assert got(claim, SLOW, MIXED, PLAIN) == ["z0", "z1", "m1", "m3", "a0", "m0", "m2"]
    assert got(claim, SLOW, MIXED, PLAIN, gates=AS_V1_38) == [
        "z0",
        "z1",
        "a0",
        "m0",
        "m1",
        "m2",
        "m3",
    ]


def test_a_better_alternative_comes_before_a_ready_device() -> None:
    alternatives = (an_alternative("three", count=3), an_alternative("one"))

    found = got(a_claim(a_request("r", first_available=alternatives)), MIXED)

    assert found == ["m1", "m3", "m0"]
