"""Devices in short form, for drivers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from allot.api.quantity import Quantity
from allot.api.slices import Device, DeviceAttribute, DeviceCapacity

AttributeValue = str | int | bool | DeviceAttribute


def make_device(
    name: str,
    attributes: Mapping[str, AttributeValue] | None = None,
    capacity: Mapping[str, str | int] | None = None,
    *,
    allow_multiple_allocations: bool = False,
    binding_conditions: Iterable[str] = (),
    binding_failure_conditions: Iterable[str] = (),
) -> Device:
    """A device with attributes of plain values, and capacity as quantities such as "80Gi"."""
    return Device(
        name,
        {key: _attribute(value) for key, value in (attributes or {}).items()},
        {
            key: DeviceCapacity(Quantity.parse(str(amount)))
            for key, amount in (capacity or {}).items()
        },
        allow_multiple_allocations=allow_multiple_allocations or None,
        binding_conditions=tuple(binding_conditions) or None,
        binding_failure_conditions=tuple(binding_failure_conditions),
    )


def _attribute(value: AttributeValue) -> DeviceAttribute:
    match value:
        case DeviceAttribute():
            return value
        case bool():
            return DeviceAttribute(bool_=value)
        case int():
            return DeviceAttribute(int_=value)
    return DeviceAttribute(string=value)
