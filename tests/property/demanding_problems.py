"""Problems on which searches go back often: scarce counters, shares, constraints, and claims near their limit."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from allot.allocation import AllocationProblem, Inventory, Ledger, TargetNode
from allot.api.claims import (
    CapacityRequirements,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from allot.api.classes import DeviceClass, DeviceClassSpec
from allot.api.meta import ObjectMeta
from allot.api.quantity import Quantity
from allot.api.resource import ALL, EXACT_COUNT, CELDeviceSelector, DeviceSelector
from allot.api.slices import (
    CapacityRequestPolicy,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from allot.features import GATES, FeatureGates

DRIVER: Final = "d.example.com"
NODE: Final = TargetNode("node-1")
EVERYTHING: Final = FeatureGates(GATES)
SETS: Final = ("s", "t", "u")
COUNTERS: Final = ("slots", "engines")
ATTRIBUTES: Final = ("color", "size")
AMOUNTS: Final = st.integers(0, 2).map(Quantity.of)
POLICIES: Final = st.sampled_from([None, CapacityRequestPolicy(default=Quantity.of(1))])
SELECTORS: Final = st.sampled_from(
    [
        "true",
        "false",
        f'device.attributes["{DRIVER}"].size >= 1',  # an error where there is no size
    ]
).map(lambda expression: DeviceSelector(CELDeviceSelector(expression)))


@st.composite
def devices(draw: DrawFn, name: str, *, with_counters: bool) -> Device:
    uses: list[DeviceCounterConsumption] = []
    if with_counters:
        for set_name in draw(st.lists(st.sampled_from(SETS), max_size=2, unique=True)):
            names = draw(st.lists(st.sampled_from(COUNTERS), min_size=1, unique=True))
            amounts = {each: Counter(draw(AMOUNTS)) for each in names}
            groups = draw(st.sampled_from([(), (), (), ("a",), ("a", "b")]))
            uses.append(DeviceCounterConsumption(set_name, amounts, groups))
    attributes = {
        each: DeviceAttribute(int_=draw(st.integers(0, 3)))
        for each in ATTRIBUTES
        if draw(st.integers(0, 9))
    }
    capacity = {}
    if draw(st.booleans()):
        value = Quantity.of(draw(st.integers(1, 4)))
        capacity["memory"] = DeviceCapacity(value, draw(POLICIES))
    return Device(
        name=name,
        attributes=attributes,
        capacity=capacity,
        consumes_counters=tuple(uses),
        allow_multiple_allocations=draw(st.sampled_from([None, None, True])),
    )


@st.composite
def request_fields(draw: DrawFn, *, can_fail: bool, most: int) -> dict[str, Any]:
    wants_all = can_fail and draw(st.integers(0, 11)) == 0
    return {
        "device_class_name": "any",
        "selectors": (draw(SELECTORS),) if can_fail and draw(st.integers(0, 2)) == 0 else (),
        "allocation_mode": ALL if wants_all else EXACT_COUNT,
        "count": 0 if wants_all else draw(st.integers(1, most)),
        "capacity": CapacityRequirements({"memory": Quantity.of(draw(st.integers(1, 3)))})
        if draw(st.integers(0, 3)) == 0
        else None,
    }


@st.composite
def claims(draw: DrawFn, name: str, *, can_fail: bool, most: int) -> ResourceClaim:
    names = [f"request-{number}" for number in range(draw(st.integers(1, 4)))]
    fields = request_fields(can_fail=can_fail, most=most)
    asked = []
    for each in names:
        if draw(st.booleans()):
            asked.append(DeviceRequest(each, ExactDeviceRequest(**draw(fields))))
            continue
        ways = tuple(
            DeviceSubRequest(name=f"way-{number}", **draw(fields))
            for number in range(draw(st.integers(1, 3)))
        )
        asked.append(DeviceRequest(each, None, ways))
    constraints = []
    for _ in range(draw(st.integers(0, 2))):
        attribute = f"{DRIVER}/{draw(st.sampled_from(ATTRIBUTES))}"
        about = tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=2)))
        constraints.append(
            DeviceConstraint(about, match_attribute=attribute)
            if draw(st.booleans())
            else DeviceConstraint(about, distinct_attribute=attribute)
        )
    spec = ResourceClaimSpec(DeviceClaim(tuple(asked), tuple(constraints)))
    return ResourceClaim(ObjectMeta(name=name, namespace="default"), spec)


@st.composite
def demanding_problems(draw: DrawFn) -> AllocationProblem:
    """Some have many devices and ask for so many that claims reach their limit."""
    near_limit = draw(st.integers(0, 3)) == 0
    can_fail = draw(st.booleans())
    with_counters = draw(st.booleans())
    number_of_devices = draw(st.integers(20, 36)) if near_limit else draw(st.integers(3, 12))
    pool = ResourcePool("pool", 1, 2 if with_counters else 1)

    def slice_of_pool(name: str, **spec: Any) -> ResourceSlice:
        given = ResourceSliceSpec(driver=DRIVER, pool=pool, node_name=NODE.name, **spec)
        return ResourceSlice(ObjectMeta(name=name), given)

    listed = tuple(
        draw(devices(f"device-{number:02}", with_counters=with_counters))
        for number in range(number_of_devices)
    )
    slices = [slice_of_pool("devices", devices=listed)]
    if with_counters:
        sets = tuple(
            CounterSet(
                each,
                {name: Counter(Quantity.of(draw(st.integers(1, 5)))) for name in COUNTERS},
            )
            for each in SETS
        )
        slices.append(slice_of_pool("counters", shared_counters=sets))
    most = 20 if near_limit else 4
    asked = [
        draw(claims(f"claim-{number}", can_fail=can_fail, most=most))
        for number in range(draw(st.integers(1, 2)))
    ]
    return AllocationProblem(
        NODE,
        asked,
        {"any": DeviceClass(ObjectMeta(name="any"), DeviceClassSpec())},
        Inventory(EVERYTHING, slices),
        Ledger(EVERYTHING),
    )
