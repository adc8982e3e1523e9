"""JSON of API objects for tests, by the names of the API: complete enough for an API server to accept.

A test states the fields it is about. `builders` makes typed objects, and `builders.manifest` their JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from allot.testing.builders import DRIVER, NAMESPACE, a_node, a_pod, manifest


def a_dra_manifest(
    kind: str, name: str, spec: Mapping[str, Any], *, namespace: str = "", **rest: Any
) -> dict[str, Any]:
    """An object of resource.k8s.io/v1; `rest` are fields beside metadata and spec."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    version = "resource.k8s.io/v1"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": dict(spec), **rest}


def a_request_manifest(
    name: str = "gpu", device_class: str = "gpu", **exactly: Any
) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": device_class, **exactly}}


def a_claim_manifest(
    *requests: Mapping[str, Any],
    name: str = "claim",
    namespace: str = NAMESPACE,
    status: Mapping[str, Any] | None = None,
    **devices: Any,
) -> dict[str, Any]:
    """A claim for one device of the class `gpu` unless it has requests; `devices` are fields of `spec.devices`."""
    wanted = {"requests": list(requests) or [a_request_manifest()], **devices}
    rest = {} if status is None else {"status": dict(status)}
    return a_dra_manifest("ResourceClaim", name, {"devices": wanted}, namespace=namespace, **rest)


def a_class_manifest(name: str = "gpu", *expressions: str, **spec: Any) -> dict[str, Any]:
    """A device class with these CEL expressions as selectors."""
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return a_dra_manifest(
        "DeviceClass", name, ({"selectors": selectors} if selectors else {}) | spec
    )


def a_slice_manifest(
    *devices: Mapping[str, Any],
    name: str = "slice",
    node: str = "node-1",
    driver: str = DRIVER,
    pool: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A slice of a node, or of what the spec says instead; its pool has the node's name unless given."""
    whole = {"name": node, "generation": 1, "resourceSliceCount": 1} | dict(pool or {})
    elsewhere = spec.keys() & {"allNodes", "nodeSelector", "perDeviceNodeSelection"}
    where = {} if elsewhere else {"nodeName": node}
    given = {"driver": driver, **where, "pool": whole, "devices": list(devices), **spec}
    return a_dra_manifest("ResourceSlice", name, given)


def a_device_manifest(
    name: str = "gpu-0",
    attributes: Mapping[str, bool | int | str] | None = None,
    *,
    binding_conditions: Iterable[str] = (),
    binding_failure_conditions: Iterable[str] = (),
    **fields: Any,
) -> dict[str, Any]:
    """A device of a slice; one with binding conditions binds to its node."""
    device: dict[str, Any] = {"name": name}
    if attributes:
        types = {bool: "bool", int: "int", str: "string"}
        device["attributes"] = {
            key: {types[type(value)]: value} for key, value in attributes.items()
        }
    if conditions := list(binding_conditions):
        device["bindsToNode"] = True
        device["bindingConditions"] = conditions
        device["bindingFailureConditions"] = list(binding_failure_conditions)
    return device | fields


def a_pod_manifest(name: str = "pod", **fields: Any) -> dict[str, Any]:
    """A pod with one container, as a client creates it. The fields are those of `a_pod`."""
    defaults: dict[str, Any] = {"uid": "", "containers": [{"name": "c", "image": "i"}]}
    return manifest(a_pod(name, **(defaults | fields)))


def a_node_manifest(name: str = "node-1", **fields: Any) -> dict[str, Any]:
    """A node as a client creates it. The fields are those of `a_node`."""
    return manifest(a_node(name, **({"uid": ""} | fields)))
