"""ResourceSlice: a pool, the nodes that can use it, and its devices or counters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from allot import features
from allot.api.slices import CounterSet, Device, DeviceAttribute, ResourceSlice, ResourceSliceSpec
from allot.rules import ONE_KIND_OF_BINDING_CONDITIONS
from allot.validation.context import Context
from allot.validation.device import (
    DeviceRules,
    validate_counters,
    validate_device,
    validate_set_name,
)
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    required,
    too_many,
)
from allot.validation.internal_types import internal_value
from allot.validation.lists import duplicates, validate_items
from allot.validation.metadata import IMMUTABLE, validate_metadata, validate_metadata_update
from allot.validation.names import (
    validate_driver_name,
    validate_fully_qualified_name,
    validate_pool_name,
    validate_subdomain,
)
from allot.validation.node_operations import validate_skipped_operations
from allot.validation.node_selector import validate_node_selector
from allot.validation.resource_claim import SPEC

MAX_DEVICES: Final = 128
MAX_DEVICES_WITH_EXTRAS: Final = 64
MAX_COUNTER_SETS: Final = 8

_NODES: Final = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
_TRUE_OR_UNSET: Final = "must be either unset or set to true"


def validate_slice(slice_: ResourceSlice, context: Context) -> Iterator[FieldError]:
    yield from validate_metadata(slice_.metadata, namespaced=False)
    yield from _validate_spec(slice_.spec, None, context)


def validate_slice_update(
    new: ResourceSlice, old: ResourceSlice, context: Context
) -> Iterator[FieldError]:
    """An existing slice. Stored capacities and taints are skipped, all else is validated again."""
    yield from validate_metadata_update(new.metadata, old.metadata)
    yield from _validate_spec(new.spec, old.spec, context)


def _validate_immutable(new: ResourceSliceSpec, old: ResourceSliceSpec) -> Iterator[FieldError]:
    for path, value, before in (
        (SPEC / "pool" / "name", new.pool.name, old.pool.name),
        (SPEC / "driver", new.driver, old.driver),
        (SPEC / "nodeName", new.node_name, old.node_name),
    ):
        if value != before:
            yield invalid(path, value, IMMUTABLE)


def _validate_spec(
    spec: ResourceSliceSpec, old: ResourceSliceSpec | None, context: Context
) -> Iterator[FieldError]:
    yield from validate_driver_name(spec.driver, SPEC / "driver")
    yield from _validate_pool(spec)
    if old is not None:
        yield from _validate_immutable(spec, old)
    yield from _validate_nodes(spec)
    if spec.devices is not None and spec.shared_counters is not None:
        yield invalid(SPEC, "", "only one of `sharedCounters` or `devices` is allowed")
    if spec.devices:
        yield from _validate_devices(spec, spec.devices, old, context)
    if spec.shared_counters:
        yield from _validate_counter_sets(spec.shared_counters, old)
    if spec.partition_type_attribute is not None:
        yield from _validate_partition_type(spec, spec.partition_type_attribute, old, context)
    yield from validate_skipped_operations(spec.skip_node_operations, SPEC / "skipNodeOperations")


def _validate_pool(spec: ResourceSliceSpec) -> Iterator[FieldError]:
    path = SPEC / "pool"
    yield from validate_pool_name(spec.pool.name, path / "name")
    if spec.pool.generation < 0:
        yield invalid(
            path / "generation", spec.pool.generation, "must be greater than or equal to zero"
        )
    if spec.pool.resource_slice_count <= 0:
        yield invalid(
            path / "resourceSliceCount", spec.pool.resource_slice_count, "must be greater than zero"
        )


def _validate_nodes(spec: ResourceSliceSpec) -> Iterator[FieldError]:
    """Exactly one form of node selection. An empty one is an error and does not count."""
    set_ = []
    if spec.node_name is not None:
        if spec.node_name:
            set_.append("`nodeName`")
            yield from validate_subdomain(spec.node_name, SPEC / "nodeName")
        else:
            yield invalid(
                SPEC / "nodeName", "", "must be either unset or set to a non-empty string"
            )
    if spec.node_selector is not None:
        set_.append("`nodeSelector`")
        path = SPEC / "nodeSelector"
        yield from validate_node_selector(spec.node_selector, path)
        terms = spec.node_selector.node_selector_terms
        if len(terms) != 1:  # so that selectors of several slices can be merged
            shown = [
                internal_value(msgspec.to_builtins(term), "NodeSelectorTerm") for term in terms
            ]
            rule = "must have exactly one node selector term"
            yield invalid(path / "nodeSelectorTerms", shown or None, rule)
    for name, value in (
        ("allNodes", spec.all_nodes),
        ("perDeviceNodeSelection", spec.per_device_node_selection),
    ):
        if value:
            set_.append(f"`{name}`")
        elif value is not None:
            yield invalid(SPEC / name, value, _TRUE_OR_UNSET)
    if not set_:
        yield required(SPEC, _NODES)
    elif len(set_) > 1:
        yield invalid(SPEC, "{" + ", ".join(set_) + "}", f"{_NODES}, but multiple fields are set")


# --- devices ---


def _validate_devices(
    spec: ResourceSliceSpec,
    devices: tuple[Device, ...],
    old: ResourceSliceSpec | None,
    context: Context,
) -> Iterator[FieldError]:
    path = SPEC / "devices"
    if len(devices) > MAX_DEVICES_WITH_EXTRAS:
        limit = device_limit(devices)
        if len(devices) > limit:
            yield too_many(path, len(devices), limit)
            return
    before = {device.name: device for device in (old.devices if old else None) or ()}
    rules = DeviceRules(
        per_device_node_selection=bool(spec.per_device_node_selection),
        fractional_capacity=features.FRACTIONAL_CAPACITY_RANGE in context.gates,
        unchanged=old is not None and old.devices == devices,
        one_kind_of_conditions=ONE_KIND_OF_BINDING_CONDITIONS in context.gates,
    )
    seen: set[str] = set()
    for index, device in enumerate(devices):
        if device.name in seen:
            yield duplicate(path @ index, device.name)
        seen.add(device.name)
        yield from validate_device(device, before.get(device.name), path @ index, rules)


def device_limit(devices: tuple[Device, ...]) -> int:
    """How many devices a slice may have: fewer if any of them carries more than the usual."""
    with_extras = any(
        device.taints or device.consumes_counters or any(map(_is_list, device.attributes.values()))
        for device in devices
    )
    return MAX_DEVICES_WITH_EXTRAS if with_extras else MAX_DEVICES


def _is_list(attribute: DeviceAttribute) -> bool:
    return not (
        attribute.ints is None
        and attribute.bools is None
        and attribute.strings is None
        and attribute.versions is None
    )


# --- counters ---


def _validate_counter_sets(
    counter_sets: tuple[CounterSet, ...], old: ResourceSliceSpec | None
) -> Iterator[FieldError]:
    path = SPEC / "sharedCounters"
    before = {set_.name: set_ for set_ in (old.shared_counters if old else None) or ()}

    def check(counter_set: CounterSet, set_path: FieldPath) -> Iterator[FieldError]:
        # Declared rules compare sets of the same name, field by field.
        stored = before.get(counter_set.name)
        yield from validate_set_name(counter_set.name, set_path / "name", stored is not None)
        same_counters = stored is not None and stored.counters == counter_set.counters
        yield from validate_counters(counter_set.counters, set_path / "counters", same_counters)

    yield from validate_items(counter_sets, path, MAX_COUNTER_SETS, check)
    if len(counter_sets) <= MAX_COUNTER_SETS:
        yield from duplicates(counter_sets, path, lambda counter_set: counter_set.name)


BAD_DOMAIN: Final = "prefix: a lowercase RFC 1123 subdomain"


def _validate_partition_type(
    spec: ResourceSliceSpec, name: str, old: ResourceSliceSpec | None, context: Context
) -> Iterator[FieldError]:
    """Every device that consumes counters must carry the attribute, as a string."""
    path = SPEC / "partitionTypeAttribute"
    if features.PARTITIONABLE_DEVICES_TYPE not in context.gates and (
        old is None or old.partition_type_attribute != name
    ):
        yield forbidden(path, "", declared=True)
    problems = list(validate_fully_qualified_name(name, path))
    yield from problems
    consumers = [
        (index, device)
        for index, device in enumerate(spec.devices or ())
        if device.consumes_counters
    ]
    if not consumers:
        yield invalid(
            path, name, "may only be set on a slice which declares devices that consume counters"
        )
    if any(not problem.detail.startswith(BAD_DOMAIN) for problem in problems):
        return  # Kubernetes goes on after a malformed domain only
    for index, device in consumers:
        attribute = _partition_attribute(device, name, spec.driver)
        attribute_path = SPEC / "devices" @ index / "attributes" @ name
        if attribute is None:
            yield required(
                attribute_path,
                "device consumes counters and `partitionTypeAttribute` names this attribute, "
                "so it must be set",
            )
        elif attribute.string is None:
            yield invalid(
                attribute_path,
                _internal(attribute),
                "must be a string value because `partitionTypeAttribute` names this attribute",
            )


def _internal(attribute: DeviceAttribute) -> dict[str, Any]:
    """The attribute as Kubernetes shows it in errors: with the fields of its struct."""
    return {
        "IntValue": attribute.int_,
        "BoolValue": attribute.bool_,
        "StringValue": attribute.string,
        "VersionValue": attribute.version,
        "IntValues": attribute.ints,
        "BoolValues": attribute.bools,
        "StringValues": attribute.strings,
        "VersionValues": attribute.versions,
    }


def _partition_attribute(device: Device, name: str, driver: str) -> DeviceAttribute | None:
    """Found under its full name, or under the bare one in the driver's own domain."""
    if name in device.attributes:
        return device.attributes[name]
    domain, _, identifier = name.partition("/")
    return device.attributes.get(identifier) if domain == driver else None
