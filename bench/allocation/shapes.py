"""Problems of the usual shapes, of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from allot.allocation import AllocationProblem, Inventory, Ledger, TargetNode
from allot.api.claims import (
    CapacityRequirements,
    DeviceClaim,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from allot.api.classes import DeviceClass, DeviceClassSpec
from allot.api.meta import ObjectMeta
from allot.api.quantity import Quantity
from allot.api.resource import EXACT_COUNT, CELDeviceSelector, DeviceSelector
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

DRIVER: Final = "gpu.example.com"
NODE: Final = TargetNode("node-1")
GATES_ON: Final = FeatureGates(GATES)
CLASS: Final = DeviceClass(
    ObjectMeta(name="gpu"),
    DeviceClassSpec(selectors=(DeviceSelector(CELDeviceSelector(f'device.driver == "{DRIVER}"')),)),
)
MODEL: Final = DeviceSelector(
    CELDeviceSelector(
        f'device.attributes["{DRIVER}"].model == "h100" &&'
        f' device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
    )
)
NUMA: Final = f"{DRIVER}/numa"

Shape = Callable[[int], tuple[list[ResourceSlice], ResourceClaim]]


def a_device(number: int, **fields: Any) -> Device:
    policy = CapacityRequestPolicy(default=Quantity.parse("1Gi"))
    shared = fields.get("allow_multiple_allocations") is True
    return Device(
        name=f"gpu-{number:04}",
        attributes={
            "model": DeviceAttribute(string="h100"),
            "numa": DeviceAttribute(int_=number // 8),
            "uuid": DeviceAttribute(string=f"GPU-{number:032x}"),
        },
        capacity={"memory": DeviceCapacity(Quantity.parse("80Gi"), policy if shared else None)},
        **fields,
    )


def a_slice(
    name: str, devices: tuple[Device, ...] | None, slices: int = 1, **spec: Any
) -> ResourceSlice:
    pool = ResourcePool(NODE.name, 1, slices)
    return ResourceSlice(
        ObjectMeta(name=name),
        ResourceSliceSpec(driver=DRIVER, pool=pool, node_name=NODE.name, devices=devices, **spec),
    )


def a_request(name: str = "gpu", **fields: Any) -> DeviceRequest:
    given: dict[str, Any] = {
        "device_class_name": "gpu",
        "allocation_mode": EXACT_COUNT,
        "count": 1,
        **fields,
    }
    return DeviceRequest(name, ExactDeviceRequest(**given))


def a_claim(
    *requests: DeviceRequest, constraints: tuple[DeviceConstraint, ...] = ()
) -> ResourceClaim:
    spec = ResourceClaimSpec(DeviceClaim(requests, constraints))
    return ResourceClaim(ObjectMeta(name="claim", namespace="default"), spec)


def plain_slices(devices: int) -> list[ResourceSlice]:
    return [a_slice("devices", tuple(map(a_device, range(devices))))]


def basic(devices: int) -> tuple[list[ResourceSlice], ResourceClaim]:
    return plain_slices(devices), a_claim(a_request())


def cel(devices: int) -> tuple[list[ResourceSlice], ResourceClaim]:
    return plain_slices(devices), a_claim(a_request(selectors=(MODEL,)))


def match_four_requests(devices: int) -> tuple[list[ResourceSlice], ResourceClaim]:
    requests = [a_request(f"gpu-{number}") for number in range(4)]
    matching = DeviceConstraint(match_attribute=NUMA)
    return plain_slices(devices), a_claim(*requests, constraints=(matching,))


def prioritized(devices: int) -> tuple[list[ResourceSlice], ResourceClaim]:
    """The second alternative is the one that fits."""
    missing = DeviceSelector(CELDeviceSelector(f'device.attributes["{DRIVER}"].model == "b200"'))
    given: dict[str, Any] = {"device_class_name": "gpu", "allocation_mode": EXACT_COUNT, "count": 1}
    best = DeviceSubRequest(name="best", selectors=(missing,), **given)
    good = DeviceSubRequest(name="good", **given)
    return plain_slices(devices), a_claim(DeviceRequest("gpu", None, (best, good)))


def capacity(devices: int) -> tuple[list[ResourceSlice], ResourceClaim]:
    """A share of a device, of which others have their shares already."""
    shared = tuple(a_device(number, allow_multiple_allocations=True) for number in range(devices))
    asked = CapacityRequirements({"memory": Quantity.parse("10Gi")})
    return [a_slice("devices", shared)], a_claim(a_request(capacity=asked))


def partitionable(devices: int) -> tuple[list[ResourceSlice], ResourceClaim]:
    """Seven partitions to a GPU, of which two are needed."""
    one = {"slots": Counter(Quantity.of(1))}
    partitions = tuple(
        a_device(number, consumes_counters=(DeviceCounterConsumption(f"gpu-{number // 7}", one),))
        for number in range(devices)
    )
    sets = tuple(
        CounterSet(f"gpu-{number}", {"slots": Counter(Quantity.of(7))})
        for number in range((devices + 6) // 7)
    )
    slices = [a_slice("devices", partitions, 2), a_slice("counters", None, 2, shared_counters=sets)]
    return slices, a_claim(a_request(count=2))


def derived(devices: int) -> tuple[list[ResourceSlice], ResourceClaim]:
    """Two devices whose computed attribute matches."""
    half = DeviceDerivedAttribute("example.com/half", f'device.attributes["{DRIVER}"].numa / 2')
    matching = DeviceConstraint(match_attribute="example.com/half")
    return plain_slices(devices), a_claim(
        a_request(count=2, derived_attributes=(half,)), constraints=(matching,)
    )


SHAPES: Final[dict[str, Shape]] = {
    "basic": basic,
    "CEL": cel,
    "match, 4 requests": match_four_requests,
    "prioritized": prioritized,
    "capacity": capacity,
    "partitionable": partitionable,
    "derived": derived,
}


def a_problem(slices: list[ResourceSlice], claim: ResourceClaim) -> AllocationProblem:
    return AllocationProblem(
        NODE, [claim], {"gpu": CLASS}, Inventory(GATES_ON, slices), Ledger(GATES_ON)
    )
