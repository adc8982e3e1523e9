"""What a claim counts for in a ResourceQuota, and which quota entries are about claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from allot.api.claims import DeviceRequest, DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from allot.api.classes import DeviceClass
from allot.api.resource import (
    ALL,
    EXACT_COUNT,
    IMPLICIT_EXTENDED_RESOURCE_PREFIX,
    MAX_RESULTS,
)

CLAIM_COUNT: Final = "count/resourceclaims.resource.k8s.io"
CLASS_SUFFIX: Final = ".deviceclass.resource.k8s.io/devices"
REQUESTS: Final = "requests."


def extended_resource_names(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """Class by extended resource name. Of several, the newest has it, then the first by name."""
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


def claim_usage(
    claim: ResourceClaim, classes: Iterable[DeviceClass], *, extended_resources: bool = True
) -> dict[str, int]:
    """What the claim uses up, by quota name."""
    usage = {CLAIM_COUNT: 1}
    devices = _devices_by_class(claim.spec.devices.requests)
    extended = {
        device_class: name for name, device_class in extended_resource_names(classes).items()
    }
    for class_name, count in devices.items():
        usage[class_name + CLASS_SUFFIX] = count
        if not extended_resources or not count:
            continue
        usage[f"{REQUESTS}{IMPLICIT_EXTENDED_RESOURCE_PREFIX}{class_name}"] = count
        if class_name in extended:
            usage[REQUESTS + extended[class_name]] = count
    return usage


def _devices_by_class(requests: tuple[DeviceRequest, ...]) -> Mapping[str, int]:
    """Devices per class, summed over requests. Of alternatives the largest counts, for each class."""
    total: dict[str, int] = {}
    for request in requests:
        alternatives: tuple[ExactDeviceRequest | DeviceSubRequest, ...] = (
            (request.exactly,) if request.exactly is not None else request.first_available
        )
        largest: dict[str, int] = {}
        for alternative in alternatives:
            name = alternative.device_class_name
            largest[name] = max(largest.get(name, 0), _count(alternative))
        for name, count in largest.items():
            total[name] = total.get(name, 0) + count
    return total


def _count(request: ExactDeviceRequest | DeviceSubRequest) -> int:
    if request.allocation_mode == ALL:
        return MAX_RESULTS
    return request.count if request.allocation_mode == EXACT_COUNT else 0


def matching_names(names: Iterable[str], classes: Iterable[DeviceClass]) -> list[str]:
    """The quota entries that claims count towards."""
    known = list(classes)
    extended = {f"{REQUESTS}{name}" for name in extended_resource_names(known)}
    implicit = {
        f"{REQUESTS}{IMPLICIT_EXTENDED_RESOURCE_PREFIX}{item.metadata.name}" for item in known
    }
    return [
        name
        for name in names
        if name == CLAIM_COUNT
        or name.endswith(CLASS_SUFFIX)
        or name in implicit
        or name in extended
    ]
