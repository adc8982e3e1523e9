"""Whether the devices that a scene needs are free, and what holds those that are not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from allot.api.identities import DeviceId

if TYPE_CHECKING:
    from allot.api.claims import ResourceClaim
    from allot.api.classes import DeviceTaintRule
    from allot.api.resource import DeviceTaint
    from allot.api.slices import ResourceSlice

_BLOCKING: Final = ("NoSchedule", "NoExecute")


class Need(NamedTuple):
    """Free devices of these drivers: so many, or without a number all; all of one node is enough with `on_one_node`."""

    drivers: tuple[str, ...]
    at_least: int | None = None
    on_one_node: bool = False


class Devices(NamedTuple):
    """The devices of a cluster, and what can hold them."""

    slices: Sequence[ResourceSlice]
    claims: Sequence[ResourceClaim]
    """Those of other users than the demo."""
    rules: Sequence[DeviceTaintRule]


def obstacles(need: Need, devices: Devices) -> list[str]:
    """What holds the devices that are needed: a line for each device. Empty if enough are free."""
    held = dict(_held(devices))
    places: dict[str, list[str]] = {}
    free = 0
    for slice_ in devices.slices:
        if slice_.spec.driver not in need.drivers:
            continue
        for device in slice_.spec.devices or ():
            id_ = slice_.spec.device_id(device)
            holder = held.get(id_) or _taint(device.taints or ())
            found = places.setdefault(slice_.spec.node_name or "", [])
            if holder:
                found.append(f"{id_.pool}/{id_.device} of {id_.driver} {holder}")
            else:
                free += 1
    lines = [line for found in places.values() for line in found]
    if need.at_least is not None:
        return [] if free >= need.at_least else lines
    if need.on_one_node and any(not found for found in places.values()):
        return []
    return lines


def _held(devices: Devices) -> Iterator[tuple[DeviceId, str]]:
    for claim in devices.claims:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            yield result.device_id, f"is held by claim {claim.key}{_users(claim)}"
    for rule in devices.rules:
        selector, taint = rule.spec.device_selector, rule.spec.taint
        if selector is not None and selector.device and taint.effect in _BLOCKING:
            key = DeviceId(selector.driver or "", selector.pool or "", selector.device)
            yield key, f"is tainted by DeviceTaintRule {rule.metadata.name}"


def _users(claim: ResourceClaim) -> str:
    pods = [each.name for each in claim.status.reserved_for if each.resource == "pods"]
    return f" of pod {', '.join(pods)}" if pods else ""


def _taint(taints: Iterable[DeviceTaint]) -> str:
    return next((f"has the taint {each.key}" for each in taints if each.effect in _BLOCKING), "")
