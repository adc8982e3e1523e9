"""API objects in one line: what a test is about is said, the rest is filled in."""

from __future__ import annotations

from typing import Any, Final

from allot.api.claims import (
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from allot.api.meta import ObjectMeta
from allot.api.quantity import Quantity
from allot.api.resource import EXACT_COUNT, CELDeviceSelector, DeviceSelector
from allot.api.slices import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

DRIVER: Final = "gpu.example.com"

_ONE_GPU: Final[dict[str, Any]] = {
    "device_class_name": DRIVER,
    "allocation_mode": EXACT_COUNT,
    "count": 1,
}
GPU: Final = ExactDeviceRequest(**_ONE_GPU)


def a_selector(expression: str) -> DeviceSelector:
    return DeviceSelector(CELDeviceSelector(expression))


def an_exact_request(**fields: Any) -> ExactDeviceRequest:
    return ExactDeviceRequest(**(_ONE_GPU | fields))


def an_alternative(name: str = "a", **fields: Any) -> DeviceSubRequest:
    return DeviceSubRequest(name=name, **(_ONE_GPU | fields))


def a_request(
    name: str = "gpu",
    exactly: ExactDeviceRequest | None = None,
    first_available: tuple[DeviceSubRequest, ...] = (),
) -> DeviceRequest:
    return DeviceRequest(name, exactly, first_available)


def a_claim(
    *requests: DeviceRequest,
    name: str = "claim",
    namespace: str = "default",
    constraints: tuple[DeviceConstraint, ...] = (),
) -> ResourceClaim:
    devices = DeviceClaim(requests or (a_request(exactly=GPU),), constraints)
    return ResourceClaim(ObjectMeta(name=name, namespace=namespace), ResourceClaimSpec(devices))


def an_attribute(value: bool | int | str) -> DeviceAttribute:
    match value:
        case bool():
            return DeviceAttribute(bool_=value)
        case int():
            return DeviceAttribute(int_=value)
        case str():
            return DeviceAttribute(string=value)


def a_device(
    name: str = "gpu-0",
    attributes: dict[str, bool | int | str] | None = None,
    capacity: dict[str, str] | None = None,
    **fields: Any,
) -> Device:
    return Device(
        name=name,
        attributes={key: an_attribute(value) for key, value in (attributes or {}).items()},
        capacity={
            key: DeviceCapacity(Quantity.parse(text)) for key, text in (capacity or {}).items()
        },
        **fields,
    )


def a_slice(
    *devices: Device, name: str = "slice", node: str = "node-1", **spec: Any
) -> ResourceSlice:
    given: dict[str, Any] = {
        "driver": DRIVER,
        "pool": ResourcePool(node, 1, 1),
        "node_name": node,
        "devices": devices or (a_device(),),
    } | spec
    return ResourceSlice(ObjectMeta(name=name), ResourceSliceSpec(**given))
