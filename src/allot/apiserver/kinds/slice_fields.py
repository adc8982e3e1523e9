"""The fields of slices behind feature gates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from allot import features
from allot.api.base import replace
from allot.api.slices import Device, ResourceSliceSpec
from allot.apiserver.kinds.gated_fields import GatedFields, drop_disabled_fields
from allot.features import FeatureGates


def _gated(
    gates: tuple[str, ...],
    is_used: Callable[[ResourceSliceSpec], bool],
    without: Callable[[ResourceSliceSpec], ResourceSliceSpec],
    is_present: Callable[[ResourceSliceSpec], bool] | None = None,
) -> GatedFields[ResourceSliceSpec, ResourceSliceSpec]:
    """`is_present` also finds fields that do not count as used, such as an empty list."""
    return GatedFields(gates, is_used, without, is_present or is_used)


def _devices(spec: ResourceSliceSpec) -> Iterable[Device]:
    return spec.devices or ()


def _any_device(uses: Callable[[Device], Any]) -> Callable[[ResourceSliceSpec], bool]:
    return lambda spec: any(map(uses, _devices(spec)))


def _each_device(
    without: Callable[[Device], Device],
) -> Callable[[ResourceSliceSpec], ResourceSliceSpec]:
    def apply(spec: ResourceSliceSpec) -> ResourceSliceSpec:
        if not spec.devices:
            return spec
        return replace(spec, devices=tuple(map(without, spec.devices)))

    return apply


def _uses_capacity(device: Device) -> bool:
    return device.allow_multiple_allocations is not None or any(
        capacity.request_policy is not None for capacity in device.capacity.values()
    )


def _without_capacity_policies(device: Device) -> Device:
    capacity = {
        name: replace(capacity, request_policy=None) for name, capacity in device.capacity.items()
    }
    return replace(device, allow_multiple_allocations=None, capacity=capacity)


def _uses_partitions(spec: ResourceSliceSpec) -> bool:
    return (
        bool(spec.shared_counters)
        or spec.per_device_node_selection is not None
        or any(
            device.consumes_counters
            or device.node_name is not None
            or device.node_selector is not None
            or device.all_nodes is not None
            for device in _devices(spec)
        )
    )


def _without_partitions(spec: ResourceSliceSpec) -> ResourceSliceSpec:
    strip = _each_device(
        lambda device: replace(
            device, consumes_counters=(), node_name=None, node_selector=None, all_nodes=None
        )
    )
    return replace(strip(spec), shared_counters=None, per_device_node_selection=None)


def _uses_lists(device: Device) -> bool:
    return any(
        lists is not None
        for attribute in device.attributes.values()
        for lists in (attribute.ints, attribute.bools, attribute.strings, attribute.versions)
    )


def _without_lists(device: Device) -> Device:
    attributes = {
        name: replace(attribute, ints=None, bools=None, strings=None, versions=None)
        for name, attribute in device.attributes.items()
    }
    return replace(device, attributes=attributes)


def _without_groups(device: Device) -> Device:
    consumption = tuple(replace(item, compatibility_groups=()) for item in device.consumes_counters)
    return replace(device, consumes_counters=consumption)


GATED: Final = (
    _gated(
        (features.DEVICE_TAINTS,),
        _any_device(lambda device: device.taints),
        _each_device(lambda device: replace(device, taints=())),
    ),
    _gated(
        (features.PARTITIONABLE_DEVICES,),
        _uses_partitions,
        _without_partitions,
        is_present=lambda spec: spec.shared_counters is not None or _uses_partitions(spec),
    ),
    _gated(
        (features.BINDING_CONDITIONS, features.DEVICE_STATUS),
        _any_device(
            lambda device: (
                device.binds_to_node is not None
                or device.binding_conditions
                or device.binding_failure_conditions
            )
        ),
        _each_device(
            lambda device: replace(
                device, binds_to_node=None, binding_conditions=None, binding_failure_conditions=()
            )
        ),
    ),
    _gated(
        (features.CONSUMABLE_CAPACITY,),
        _any_device(_uses_capacity),
        _each_device(_without_capacity_policies),
    ),
    _gated(
        (features.COMPATIBILITY_GROUPS,),
        _any_device(
            lambda device: any(item.compatibility_groups for item in device.consumes_counters)
        ),
        _each_device(_without_groups),
    ),
    _gated(
        (features.LIST_TYPE_ATTRIBUTES,), _any_device(_uses_lists), _each_device(_without_lists)
    ),
    _gated(
        (features.NODE_ALLOCATABLE_RESOURCES,),
        _any_device(lambda device: device.node_allocatable_resources),
        _each_device(lambda device: replace(device, node_allocatable_resources={})),
    ),
    _gated(
        (features.OPTIONAL_NODE_OPERATIONS,),
        lambda spec: bool(spec.skip_node_operations),
        lambda spec: replace(spec, skip_node_operations=()),
    ),
    _gated(
        (features.PARTITIONABLE_DEVICES_TYPE,),
        lambda spec: spec.partition_type_attribute is not None,
        lambda spec: replace(spec, partition_type_attribute=None),
    ),
)


def drop_disabled_slice_fields(
    spec: ResourceSliceSpec, old: ResourceSliceSpec | None, gates: FeatureGates
) -> ResourceSliceSpec:
    return drop_disabled_fields(spec, old, gates, GATED)
