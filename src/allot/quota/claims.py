"""The quota usage of a ResourceClaim, and the quota entries for claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from allot.api.claims import DeviceRequest, DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from allot.api.classes import DeviceClass
from allot.api.core import Pod
from allot.api.resource import (
    ALL,
    EXACT_COUNT,
    EXTENDED_RESOURCE_CLAIM,
    IMPLICIT_EXTENDED_RESOURCE_PREFIX,
    MAX_RESULTS,
)

_CLAIM_COUNT: Final = "count/resourceclaims.resource.k8s.io"
_CLASS_SUFFIX: Final = ".deviceclass.resource.k8s.io/devices"
REQUESTS: Final = "requests."


def extended_resource_names(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """Class by extended resource name. Of several classes, the newest counts, then the first by name."""
    newest: dict[str, DeviceClass] = {}
    for device_class in sorted(classes, key=lambda item: item.metadata.name):
        name = device_class.spec.extended_resource_name
        if name is None:
            continue
        holder = newest.get(name)
        if holder is None or _created(device_class) > _created(holder):
            newest[name] = device_class
    return {name: holder.metadata.name for name, holder in newest.items()}


def _created(device_class: DeviceClass) -> float:
    time = device_class.metadata.creation_timestamp
    return time.timestamp() if time else 0.0


def extended_name_by_class(classes: Iterable[DeviceClass]) -> dict[str, str | None]:
    """The extended resource name of each class, also if a newer class has the same."""
    return {item.metadata.name: item.spec.extended_resource_name for item in classes}


def claim_usage(
    claim: ResourceClaim,
    extended_names: Mapping[str, str | None],
    *,
    extended_resources: bool = True,
    pod: Pod | None = None,
) -> dict[str, int]:
    """The usage of the claim, by quota entry.

    `extended_names` are those of all classes: each counts under its own. `pod` is the owner of a claim for extended resources: what the pod accounts for is not counted twice.
    """
    usage = {_CLAIM_COUNT: 1}
    devices = _devices_by_class(claim.spec.devices.requests)
    charged: dict[str, int] = {}
    for class_name, count in devices.items():
        usage[class_name + _CLASS_SUFFIX] = count
        if not extended_resources or count <= 0 or not class_name:
            continue
        charged[f"{REQUESTS}{IMPLICIT_EXTENDED_RESOURCE_PREFIX}{class_name}"] = count
        name = extended_names.get(class_name)
        if name is not None:
            charged[REQUESTS + name] = charged.get(REQUESTS + name, 0) + count
    if pod is not None and _is_made_for(claim, pod):
        for name, amount in _extended_requests(pod).items():
            charged[name] = charged.get(name, 0) - amount
    return usage | {name: count for name, count in charged.items() if count > 0}


def _is_made_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the claim was created for the extended resources of this pod."""
    status = pod.status.extended_resource_claim_status
    if status is not None and status.resource_claim_name != claim.metadata.name:
        return False
    return is_for_extended(claim) and any(
        owner.controller
        and (owner.api_version, owner.kind, owner.uid) == ("v1", "Pod", pod.metadata.uid)
        for owner in claim.metadata.owner_references
    )


def is_for_extended(claim: ResourceClaim) -> bool:
    """Whether the claim was created for the extended resources of a pod."""
    return claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true"


def _extended_requests(pod: Pod) -> dict[str, int]:
    """The requests of a pod, by quota entry: all containers together, or the largest init container."""
    together: dict[str, int] = {}
    for container in pod.spec.containers:
        for name, amount in container.resources.requests.items():
            together[REQUESTS + name] = together.get(REQUESTS + name, 0) + amount.value()
    for container in pod.spec.init_containers:
        for name, amount in container.resources.requests.items():
            together[REQUESTS + name] = max(together.get(REQUESTS + name, 0), amount.value())
    return together


def _devices_by_class(requests: tuple[DeviceRequest, ...]) -> Mapping[str, int]:
    """Devices per class, summed over requests. Of alternatives the largest counts, for each class."""
    total: dict[str, int] = {}
    for request in requests:
        for name, count in _devices_of(request).items():
            total[name] = total.get(name, 0) + count
    return total


def _devices_of(request: DeviceRequest) -> dict[str, int]:
    if not request.first_available:
        exactly = request.exactly
        return {} if exactly is None else {exactly.device_class_name: _count(exactly)}
    largest: dict[str, int] = {}
    for alternative in request.first_available:
        name, count = alternative.device_class_name, _count(alternative)
        if count > largest.get(name, 0):
            largest[name] = count
    return largest


def _count(request: ExactDeviceRequest | DeviceSubRequest) -> int:
    if request.allocation_mode == ALL:
        return MAX_RESULTS
    return request.count if request.allocation_mode == EXACT_COUNT else 0


class ClaimEntries:
    """Recognizes the quota entries that claims count towards."""

    def __init__(self, classes: Iterable[DeviceClass], *, extended_resources: bool = True) -> None:
        known = list(classes) if extended_resources else []
        extended = {f"{REQUESTS}{name}" for name in extended_resource_names(known)}
        implicit = {
            f"{REQUESTS}{IMPLICIT_EXTENDED_RESOURCE_PREFIX}{item.metadata.name}" for item in known
        }
        self._of_classes = extended | implicit

    def among(self, names: Iterable[str]) -> list[str]:
        return [
            name
            for name in names
            if name == _CLAIM_COUNT or name.endswith(_CLASS_SUFFIX) or name in self._of_classes
        ]
