"""How devices relate to a node's own resources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.quantity import Quantity
from allot.api.slices import Device, NodeAllocatableMapping, NodeAllocatableOverhead
from allot.validation.fields import FieldError, FieldPath, invalid, not_found, required

_SOURCES: Final = "`capacityKey`, `deviceMultiplier`"
NOT_A_NODE_RESOURCE: Final = "must be a node allocatable resource name"
NO_OVERHEAD: Final = "at least one of perPod or perContainer must be set"
NOT_NEGATIVE: Final = "must be non-negative"


def is_node_allocatable(resource: str) -> bool:
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def validate_node_allocatable_resources(device: Device, path: FieldPath) -> Iterator[FieldError]:
    for name, resource in device.node_allocatable_resources.items():
        if not is_node_allocatable(name):
            yield invalid(path @ name, name, NOT_A_NODE_RESOURCE)
        if resource.mapping is None and resource.overhead is None:
            yield required(path @ name, "at least one of mapping or overhead must be set")
        if resource.mapping is not None:
            yield from _validate_mapping(resource.mapping, device, path @ name / "mapping")
        if resource.overhead is not None:
            yield from _validate_overhead(resource.overhead, path @ name / "overhead")


def _validate_mapping(
    mapping: NodeAllocatableMapping, device: Device, path: FieldPath
) -> Iterator[FieldError]:
    key, per_unit, per_device = (
        mapping.capacity_key,
        mapping.capacity_multiplier,
        mapping.device_multiplier,
    )
    if key is None and per_device is None:
        yield invalid(path, "", f"must specify one of: {_SOURCES}", declared=True)
    elif key is not None and per_device is not None:
        yield invalid(
            path,
            "{capacityKey, deviceMultiplier}",
            f"must specify exactly one of: {_SOURCES}",
            declared=True,
        )
    if key == "":
        yield invalid(path / "capacityKey", "", "capacityKey must not be an empty string")
    elif key is not None and key not in device.capacity:
        yield not_found(path / "capacityKey", key)
    if key is not None and per_unit is None:
        yield required(
            path / "capacityMultiplier", "capacityMultiplier is required when capacityKey is set"
        )
    if key is None and per_unit is not None:
        yield required(
            path / "capacityKey", "capacityKey is required when capacityMultiplier is set"
        )
    if key is not None and per_unit is not None and per_unit.sign <= 0:
        yield invalid(path / "capacityMultiplier", str(per_unit), "must be positive")
    if per_device is not None and per_device.sign <= 0:
        yield invalid(path / "deviceMultiplier", str(per_device), "must be positive")


def _validate_overhead(overhead: NodeAllocatableOverhead, path: FieldPath) -> Iterator[FieldError]:
    amounts = {"perPod": overhead.per_pod, "perContainer": overhead.per_container}
    yield from validate_overhead_amounts(amounts, path)


def validate_overhead_amounts(
    amounts: dict[str, Quantity | None], path: FieldPath
) -> Iterator[FieldError]:
    """Overhead per pod, per container, or both; never negative."""
    if all(amount is None for amount in amounts.values()):
        yield invalid(path, "", NO_OVERHEAD)
    for name, amount in amounts.items():
        if amount is not None and amount.sign < 0:
            yield invalid(path / name, str(amount), NOT_NEGATIVE)
