"""Objects as Go prints them, for the error messages in which Kubernetes quotes a whole object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.json import encode

from allot.api.meta import NodeSelector, NodeSelectorRequirement
from allot.api.slices import Device, DeviceAttribute


def quoted(text: str) -> str:
    return encode(text).decode()


def node_selector_text(selector: NodeSelector, type_name: str = "NodeSelector") -> str:
    terms = "".join(
        f"NodeSelectorTerm{{MatchExpressions:{_requirements(term.match_expressions)},"
        f"MatchFields:{_requirements(term.match_fields)},}},"
        for term in selector.node_selector_terms
    )
    return f"&{type_name}{{NodeSelectorTerms:[]NodeSelectorTerm{{{terms}}},}}"


def _requirements(requirements: Iterable[NodeSelectorRequirement]) -> str:
    shown = "".join(
        f"NodeSelectorRequirement{{Key:{need.key},Operator:{need.operator},"
        f"Values:[{' '.join(need.values)}],}},"
        for need in requirements
    )
    return f"[]NodeSelectorRequirement{{{shown}}}"


def device_text(device: Device) -> str:
    """The device, with its maps sorted by name as Go sorts them."""
    selector = device.node_selector
    fields = {
        "Name": device.name,
        "Attributes": _map("QualifiedName", "DeviceAttribute", device.attributes, _attribute),
        "Capacity": _map(
            "QualifiedName", "DeviceCapacity", device.capacity, lambda c: f"{{{c.value}}}"
        ),
        "ConsumesCounters": "[]DeviceCounterConsumption{"
        + "".join(
            f"DeviceCounterConsumption{{CounterSet:{used.counter_set},"
            f"Counters:{_map('string', 'Counter', used.counters, lambda c: f'{{{c.value}}}')},"
            f"CompatibilityGroups:[{' '.join(used.compatibility_groups)}],}},"
            for used in device.consumes_counters
        )
        + "}",
        "NodeName": _pointer(device.node_name),
        "NodeSelector": node_selector_text(selector, "v11.NodeSelector") if selector else "nil",
        "AllNodes": _pointer(device.all_nodes),
        "Taints": "[]DeviceTaint{"
        + "".join(
            f"DeviceTaint{{Key:{taint.key},Value:{taint.value},Effect:{taint.effect},TimeAdded:<nil>,}},"
            for taint in device.taints
        )
        + "}",
        "BindsToNode": _pointer(device.binds_to_node),
        "BindingConditions": f"[{' '.join(device.binding_conditions or ())}]",
        "BindingFailureConditions": f"[{' '.join(device.binding_failure_conditions)}]",
        "AllowMultipleAllocations": _pointer(device.allow_multiple_allocations),
        "NodeAllocatableResources": "map[k8s_io_api_core_v1.ResourceName]NodeAllocatableResource{}",
    }
    return "&Device{" + "".join(f"{name}:{text}," for name, text in fields.items()) + "}"


def _pointer(value: bool | str | None) -> str:
    if value is None:
        return "nil"
    return f"*{str(value).lower() if isinstance(value, bool) else value}"


def _map(key_type: str, value_type: str, values: Mapping[str, Any], show: Any) -> str:
    shown = "".join(f"{name}: {show(values[name])}," for name in sorted(values))
    return f"map[{key_type}]{value_type}{{{shown}}}"


def _attribute(attribute: DeviceAttribute) -> str:
    return (
        f"{{{_pointer_or_nil(attribute.int_)} {_pointer_or_nil(attribute.bool_)} "
        f"{_pointer_or_nil(attribute.string)} {_pointer_or_nil(attribute.version)}}}"
    )


def _pointer_or_nil(value: object) -> str:
    return "<nil>" if value is None else str(value)
