"""API objects for tests: a test states the fields it is about, the builders fill in the rest.

    a_claim, a_slice, a_class, a_device ...   typed objects of resource.k8s.io
    a_pod, a_node                             views of raw JSON; fields of the spec by their API names
    a_problem                                 claims, devices and what is allocated, for `allocate` and `explain`
    manifest                                  the JSON of any of them, as a client sends it

`allot.testing.manifests` builds JSON by the names of the API. Objects are in the namespace `default`, and the uid of `name` is `uid-name`, unless a test says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from allot.allocation import AllocationProblem, Inventory, Ledger, TargetNode
from allot.api.base import ApiObject
from allot.api.claims import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from allot.api.classes import DeviceClass, DeviceClassSpec
from allot.api.core import Node, Pod
from allot.api.decoding import to_builtin
from allot.api.meta import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    OwnerReference,
)
from allot.api.quantity import Quantity
from allot.api.raw import RawObject
from allot.api.resource import EXACT_COUNT, CELDeviceSelector, DeviceSelector
from allot.api.slices import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from allot.features import DEFAULTS, FeatureGates

DRIVER: Final = "gpu.example.com"
NAMESPACE: Final = "default"
DELETED_AT: Final = "2026-01-01T00:00:00Z"
"""The deletionTimestamp of objects that are being deleted."""

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
    namespace: str = NAMESPACE,
    constraints: tuple[DeviceConstraint, ...] = (),
    config: tuple[DeviceClaimConfiguration, ...] = (),
    allocation: AllocationResult | None = None,
    reserved_for: Iterable[ResourceClaimConsumerReference] = (),
    **metadata: Any,
) -> ResourceClaim:
    """A claim for one GPU unless it has requests; other metadata by the names of `ObjectMeta`."""
    devices = DeviceClaim(requests or (a_request(exactly=GPU),), constraints, config)
    return ResourceClaim(
        ObjectMeta(name=name, namespace=namespace, **metadata),
        ResourceClaimSpec(devices),
        ResourceClaimStatus(allocation, tuple(reserved_for)),
    )


def an_allocation(
    *devices: str,
    driver: str = DRIVER,
    pool: str = "node-1",
    request: str = "gpu",
    node: str = "",
    **result: Any,
) -> AllocationResult:
    """These devices of one pool, with `node` only usable there; `result` are fields that all of them have."""
    results = tuple(
        DeviceRequestAllocationResult(request, driver, pool, device, **result) for device in devices
    )
    selector = None
    if node:
        named = NodeSelectorRequirement("metadata.name", "In", (node,))
        selector = NodeSelector((NodeSelectorTerm(match_fields=(named,)),))
    return AllocationResult(DeviceAllocationResult(results), node_selector=selector)


def a_consumer(pod: str = "pod", uid: str | None = None) -> ResourceClaimConsumerReference:
    """The reference by which a claim is reserved for a pod."""
    return ResourceClaimConsumerReference(resource="pods", name=pod, uid=_uid(pod, uid))


def an_owner(
    name: str = "pod",
    uid: str | None = None,
    *,
    kind: str = "Pod",
    api_version: str = "v1",
    controller: bool = True,
) -> OwnerReference:
    return OwnerReference(api_version, kind, name, _uid(name, uid), controller)


def a_class(
    name: str = DRIVER, *expressions: str, created: datetime | None = None, **spec: Any
) -> DeviceClass:
    """A device class with these CEL expressions as selectors."""
    spec = {"selectors": tuple(map(a_selector, expressions))} | spec
    return DeviceClass(ObjectMeta(name=name, creation_timestamp=created), DeviceClassSpec(**spec))


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


def a_problem(
    *claims: ResourceClaim,
    devices: Iterable[Device] = (),
    slices: Iterable[ResourceSlice] = (),
    classes: Iterable[DeviceClass] = (),
    allocated: Mapping[str, AllocationResult] | None = None,
    node: str = "node-1",
    gates: FeatureGates = DEFAULTS,
) -> AllocationProblem:
    """Claims for a node with a slice of these devices, unless there are slices.

    `allocated` has by its key what each other claim holds. Without classes there is one for all devices.
    """
    ledger = Ledger(gates)
    for claim, allocation in (allocated or {}).items():
        ledger.add(claim, allocation)
    return AllocationProblem(
        TargetNode(node),
        claims or (a_claim(),),
        {each.metadata.name: each for each in tuple(classes) or (a_class(),)},
        Inventory(gates, tuple(slices) or (a_slice(*devices, name=node, node=node),)),
        ledger,
    )


# --- kinds that are read as raw JSON ---


def a_pod(
    name: str = "pod",
    *,
    namespace: str = NAMESPACE,
    uid: str | None = None,
    node: str = "",
    phase: str = "",
    claims: Mapping[str, str] | Iterable[Mapping[str, str]] = (),
    conditions: Mapping[str, str] | Iterable[Mapping[str, Any]] = (),
    deleting: bool = False,
    owners: Iterable[OwnerReference] = (),
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """A pod. `claims` are claim names by entry, or entries of `spec.resourceClaims`.

    `conditions` are statuses by type, or whole conditions. Fields left out here are missing in the pod.
    """
    meta = _metadata(name, namespace, uid, deleting, owners) | dict(metadata or {})
    if isinstance(claims, Mapping):
        claims = [{"name": entry, "resourceClaimName": claim} for entry, claim in claims.items()]
    given = {"nodeName": node, "resourceClaims": list(claims)} | spec
    reported = {"phase": phase, "conditions": _conditions(conditions)} | dict(status or {})
    return Pod(_object("v1", "Pod", meta, given, reported))


def a_node(
    name: str = "node-1",
    *,
    uid: str | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str | Mapping[str, Any]] = (),
    conditions: Mapping[str, str] | Iterable[Mapping[str, Any]] = (),
    deleting: bool = False,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Node:
    """A node. Taints are written as `key=value:effect` or `key:effect`, or are whole taints."""
    meta = _metadata(name, "", uid, deleting, ()) | dict(metadata or {})
    if labels:
        meta["labels"] = dict(labels)
    given = {"taints": [a_taint(taint) for taint in taints]} | spec
    reported = {"conditions": _conditions(conditions)} | dict(status or {})
    return Node(_object("v1", "Node", meta, given, reported))


_TAINT: Final = re.compile(r"(?P<key>[^=:]+)(?:=(?P<value>[^:]*))?:(?P<effect>\w+)").fullmatch


def a_taint(written: str | Mapping[str, Any]) -> dict[str, Any]:
    """The taint of a node that kubectl writes as `key=value:effect`."""
    if not isinstance(written, str):
        return dict(written)
    found = _TAINT(written)
    assert found is not None, f"{written!r} is not key=value:effect"
    return {name: value for name, value in found.groupdict().items() if value is not None}


def manifest(obj: ApiObject | RawObject, kind: str = "") -> dict[str, Any]:
    """The JSON of an object; of a typed one with its kind and the API version of resource.k8s.io."""
    if isinstance(obj, RawObject):
        return dict(obj.data)
    body: dict[str, Any] = msgspec.to_builtins(obj, enc_hook=to_builtin, str_keys=True)
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind or type(obj).__name__, **body}


def _uid(name: str, uid: str | None) -> str:
    return f"uid-{name}" if uid is None else uid


def _metadata(
    name: str, namespace: str, uid: str | None, deleting: bool, owners: Iterable[OwnerReference]
) -> dict[str, Any]:
    return _present(
        {
            "name": name,
            "namespace": namespace,
            "uid": _uid(name, uid),
            "deletionTimestamp": DELETED_AT if deleting else "",
            "ownerReferences": [msgspec.to_builtins(owner) for owner in owners],
        }
    )


def _conditions(given: Mapping[str, str] | Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if isinstance(given, Mapping):
        return [{"type": type_, "status": status} for type_, status in given.items()]
    return [dict(condition) for condition in given]


def _object(
    api_version: str,
    kind: str,
    metadata: Mapping[str, Any],
    spec: Mapping[str, Any],
    status: Mapping[str, Any],
) -> dict[str, Any]:
    parts = {"metadata": metadata, "spec": _present(spec), "status": _present(status)}
    return {"apiVersion": api_version, "kind": kind, **_present(parts)}


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Without empty strings, lists and mappings, which API objects leave out."""
    return {name: value for name, value in fields.items() if value not in ("", [], {}, None)}
