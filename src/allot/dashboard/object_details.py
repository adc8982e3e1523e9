"""Devices, claims and pods in detail, with links between them: pod, claim, request, alternative, device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from allot.api.claims import (
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from allot.api.core import Pod
from allot.api.decoding import to_builtin
from allot.api.identities import DeviceId, ObjectKey
from allot.api.raw import RawObject
from allot.api.slices import Device, DeviceAttribute
from allot.api.times import read_time
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.dashboard.claim_log import Noticed
from allot.dashboard.floor_plan import FloorPlan
from allot.questions.object_states import claim_state, event_time

Json = dict[str, Any]


# --- devices ---


def device_detail(floor: FloorPlan, device: DeviceId) -> Json | None:
    """Everything about a device; None if it is neither published nor held."""
    row = floor.row(device)
    if row is None:
        return None
    detail: Json = {"number": floor.number_of(device), "row": row}
    published = floor.published(device)
    if published is not None:
        slice_, found = published
        detail |= {
            "slice": slice_.metadata.name,
            "generation": slice_.spec.pool.generation,
            "attributes": {
                name: attribute_text(value) for name, value in sorted(found.attributes.items())
            },
            "capacity": {
                name: str(capacity.value) for name, capacity in sorted(found.capacity.items())
            },
            "counters": _counters(found),
            "bindingConditions": list(found.binding_conditions or ()),
            "isShareable": bool(found.allow_multiple_allocations),
        }
    return detail


def _counters(device: Device) -> dict[str, str]:
    return {
        f"{use.counter_set}/{name}": str(counter.value)
        for use in device.consumes_counters
        for name, counter in sorted(use.counters.items())
    }


def attribute_text(value: DeviceAttribute) -> str:
    """The value as a person reads it."""
    for field in DeviceAttribute.__struct_fields__:
        found = getattr(value, field)
        if isinstance(found, tuple):
            return ", ".join(map(_scalar, found))
        if found is not None:
            return _scalar(found)
    return ""


def _scalar(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- claims ---


def claim_row(claim: ResourceClaim) -> Json:
    """A claim in a list."""
    allocation = claim.status.allocation
    return {
        "claim": str(claim.key),
        "state": claim_state(claim),
        "created": _seconds(claim.metadata.creation_timestamp),
        "devices": [_device_name(each) for each in allocation.devices.results]
        if allocation is not None
        else [],
        "pods": [each.name for each in claim.status.reserved_for if each.resource == "pods"],
    }


def claim_detail(
    objects: Snapshot,
    key: ObjectKey,
    noticed: Sequence[Noticed],
    events: Iterable[RawObject],
) -> Json | None:
    """A claim with its requests, devices, pods and timeline; None if it never existed as far as is known."""
    claim = objects.get(resources.RESOURCE_CLAIMS, key)
    if claim is None and not noticed:
        return None
    timeline = [{"at": each.at, "what": each.what, "detail": each.detail} for each in noticed]
    timeline += map(_event_entry, events)
    if claim is None:
        return {
            "claim": str(key),
            "state": "deleted",
            "requests": [],
            "pods": [],
            "timeline": _sorted(timeline),
        }
    pods = _pods_of(objects, claim)
    timeline += _claim_times(claim)
    for pod in pods:
        timeline += _pod_times(pod)
    return claim_row(claim) | {
        "requests": [_request(claim, request) for request in claim.spec.devices.requests],
        "constraints": [
            msgspec.to_builtins(each, enc_hook=to_builtin)
            for each in claim.spec.devices.constraints
        ],
        "owner": next((f"{o.kind} {o.name}" for o in claim.metadata.owner_references), ""),
        "pods": [pod_row(pod) for pod in pods],
        "timeline": _sorted(timeline),
    }


def _request(claim: ResourceClaim, request: DeviceRequest) -> Json:
    """A request, its alternatives, and the devices that it got."""
    results = [
        result for result in _results(claim) if result.request.partition("/")[0] == request.name
    ]
    chosen = {result.request.partition("/")[2] for result in results}
    wanted: list[tuple[str, ExactDeviceRequest | DeviceSubRequest]] = [
        (each.name, each) for each in request.first_available
    ]
    if request.exactly is not None:
        wanted.append(("", request.exactly))
    return {
        "name": request.name,
        "alternatives": [
            {
                "name": name,
                "isChosen": name in chosen,
                "class": each.device_class_name,
                "count": each.count,
                "mode": each.allocation_mode,
                "selectors": [
                    selector.cel.expression for selector in each.selectors if selector.cel
                ],
            }
            for name, each in wanted
        ],
        "devices": [
            {
                "device": _device_name(result),
                "alternative": result.request.partition("/")[2],
                "consumed": {name: str(value) for name, value in result.consumed_capacity.items()},
                "isAdmin": bool(result.admin_access),
            }
            for result in results
        ],
    }


def _results(claim: ResourceClaim) -> Sequence[Any]:
    allocation = claim.status.allocation
    return allocation.devices.results if allocation is not None else ()


def _device_name(result: Any) -> list[str]:
    return [result.driver, result.pool, result.device]


def _pods_of(objects: Snapshot, claim: ResourceClaim) -> list[Pod]:
    """The pods that the claim is reserved for, or that name it."""
    namespace, name = claim.key
    found = {
        key: pod
        for each in claim.status.reserved_for
        if (pod := objects.get(resources.PODS, key := ObjectKey(namespace, each.name))) is not None
    }
    for owner in claim.metadata.owner_references:
        key = ObjectKey(namespace, owner.name)
        pod = objects.get(resources.PODS, key) if owner.kind == "Pod" else None
        if pod is not None:
            found[key] = pod
    if not found:
        for pod in objects.of(resources.PODS):
            if pod.key.namespace == namespace and name in pod.used_claims:
                found[pod.key] = pod
    return list(found.values())


# --- pods ---


def pod_row(pod: Pod) -> Json:
    """A pod in a list."""
    return {
        "pod": str(pod.key),
        "phase": pod.phase or "Pending",
        "node": pod.node_name,
        "created": _seconds(pod.metadata.creation_timestamp),
        "claims": [f"{pod.key.namespace}/{name}" for name in pod.used_claims],
    }


def pod_detail(objects: Snapshot, key: ObjectKey, events: Iterable[RawObject]) -> Json | None:
    pod = objects.get(resources.PODS, key)
    if pod is None:
        return None
    statuses = pod.claim_statuses
    claims = []
    for entry in pod.claim_entries:
        name = entry.claim_name or statuses.get(entry.name) or ""
        claim = objects.get(resources.RESOURCE_CLAIMS, ObjectKey(key.namespace, name))
        claims.append(
            {
                "entry": entry.name,
                "template": entry.template_name,
                "claim": f"{key.namespace}/{name}" if name else "",
                "state": claim_state(claim) if claim is not None else "missing",
                "requests": [_request(claim, each) for each in claim.spec.devices.requests]
                if claim is not None
                else [],
            }
        )
    timeline = [*_pod_times(pod), *map(_event_entry, events)]
    owner = next((f"{o.kind} {o.name}" for o in pod.metadata.owner_references), "")
    return pod_row(pod) | {"owner": owner, "entries": claims, "timeline": _sorted(timeline)}


# --- timelines ---


def _claim_times(claim: ResourceClaim) -> Iterator[Json]:
    if claim.metadata.creation_timestamp is not None:
        yield _entry(claim.metadata.creation_timestamp, "claim created")
    allocation = claim.status.allocation
    if allocation is not None and allocation.allocation_timestamp is not None:
        devices = ", ".join(each.device for each in allocation.devices.results)
        yield _entry(allocation.allocation_timestamp, "allocated", devices)
    for device in claim.status.devices:
        for condition in device.conditions:
            if condition.last_transition_time is not None:
                text = f"{condition.type} is {condition.status} on {device.device}"
                reason = f": {condition.reason}" if condition.reason else ""
                yield _entry(condition.last_transition_time, "condition", text + reason)
    if claim.metadata.deletion_timestamp is not None:
        yield _entry(claim.metadata.deletion_timestamp, "deletion requested")


_POD_CONDITIONS: Final = {
    "PodScheduled": "bound",
    "PodReadyToStartContainers": "prepared",
    "Initialized": "",
    "ContainersReady": "",
    "Ready": "ready",
}


def _pod_times(pod: Pod) -> Iterator[Json]:
    name = pod.key.name
    if pod.metadata.creation_timestamp is not None:
        yield _entry(pod.metadata.creation_timestamp, "pod created", name)
    for condition in pod.get("status", "conditions", default=()):
        kind, is_true = condition.get("type", ""), condition.get("status") == "True"
        at = read_time(condition.get("lastTransitionTime"))
        word = _POD_CONDITIONS.get(kind, kind)
        if at is None or not word:
            continue
        if is_true:
            where = f" to {pod.node_name}" if kind == "PodScheduled" else ""
            yield _entry(at, word, f"pod {name}{where}")
        elif condition.get("message"):
            yield _entry(at, f"{kind} is {condition.get('status')}", str(condition["message"]))
    started = read_time(pod.get("status", "startTime"))
    if started is not None:
        yield _entry(started, "accepted by the kubelet", f"pod {name}")


def _event_entry(event: RawObject) -> Json:
    note = event.get("note") or event.get("message") or ""
    entry = _entry(event_time(event), str(event.get("reason", default="")), str(note))
    return entry | {"isEvent": True, "isWarning": event.get("type") == "Warning"}


def _entry(at: Any, what: str, detail: str = "") -> Json:
    return {"at": _seconds(at), "what": what, "detail": detail}


def _seconds(at: Any) -> float | None:
    return None if at is None else float(at.timestamp())


_ORDER: Final = (
    "pod created",
    "claim created",
    "allocated",
    "reserved",
    "condition",
    "bound",
    "accepted by the kubelet",
    "prepared",
    "ready",
    "released",
    "deallocated",
    "deletion requested",
    "deleted",
)
"""What happens in one second, in the order of a claim's life: most times are in whole seconds."""


def _sorted(timeline: list[Json]) -> list[Json]:
    rank = {what: number for number, what in enumerate(_ORDER)}
    middle = rank["ready"]
    return sorted(
        timeline, key=lambda entry: (int(entry["at"] or 0), rank.get(entry["what"], middle))
    )
