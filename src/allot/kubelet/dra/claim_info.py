"""The claims of a node's pods: who uses them, and what drivers prepared for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from allot.api.claims import DeviceRequestAllocationResult, ResourceClaim
from allot.api.identities import ObjectKey


class ClaimReference(NamedTuple):
    """What a driver is told about a claim."""

    namespace: str
    uid: str
    name: str

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


class PreparedDevice(NamedTuple):
    """A device as its driver prepared it."""

    pool: str
    device: str
    request_names: tuple[str, ...] = ()
    """Empty: it belongs to all requests of the claim."""
    cdi_device_ids: tuple[str, ...] = ()
    share_id: str | None = None

    def is_for(self, request: str) -> bool:
        """Whether a container that asks for this request of the claim gets the device."""
        return not request or not self.request_names or request in self.request_names


class PreparedClaim(NamedTuple):
    """A driver's answer about one claim."""

    devices: tuple[PreparedDevice, ...] = ()
    error: str = ""


@dataclass
class ClaimInfo:
    """A claim on this node. What the kubelet forgets when it restarts is marked."""

    reference: ClaimReference
    pod_uids: set[str] = field(default_factory=set)
    devices_by_driver: dict[str, tuple[PreparedDevice, ...]] = field(default_factory=dict)
    """Every driver of the claim, and what it prepared."""
    unprepare_skips: frozenset[str] = frozenset()
    """Drivers without NodeUnprepareResources for this claim: all its devices skip the operation."""
    is_prepared: bool = False
    """Since the kubelet started."""
    is_unpreparing: bool = False
    """In this moment."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while drivers are called about it."""


def base_request_name(request: str) -> str:
    """The name of the request in the claim's spec: without the alternative that was chosen."""
    return request.split("/", 1)[0]


def results_by_driver(claim: ResourceClaim) -> dict[str, list[DeviceRequestAllocationResult]]:
    """The allocated devices, by driver."""
    found: dict[str, list[DeviceRequestAllocationResult]] = {}
    if claim.status.allocation is not None:
        for result in claim.status.allocation.devices.results:
            found.setdefault(result.driver, []).append(result)
    return found


class ClaimInfoCache:
    """The claims of a node, by namespace and name."""

    def __init__(self, infos: Iterable[ClaimInfo] = ()) -> None:
        self._infos = {info.reference.key: info for info in infos}
        self._keys_by_pod: dict[str, set[ObjectKey]] = {}
        for key, info in self._infos.items():
            for uid in info.pod_uids:
                self._keys_by_pod.setdefault(uid, set()).add(key)

    def __iter__(self) -> Iterator[ClaimInfo]:
        return iter(tuple(self._infos.values()))

    def __len__(self) -> int:
        return len(self._infos)

    def get(self, key: ObjectKey) -> ClaimInfo | None:
        return self._infos.get(key)

    def put(self, info: ClaimInfo) -> None:
        self._infos[info.reference.key] = info

    def remove(self, info: ClaimInfo) -> None:
        key = info.reference.key
        if self._infos.get(key) is info:
            del self._infos[key]
        for uid in tuple(info.pod_uids):
            self.remove_pod(info, uid)

    def add_pod(self, info: ClaimInfo, uid: str) -> bool:
        """Whether the pod was not known as a user of the claim."""
        if uid in info.pod_uids:
            return False
        info.pod_uids.add(uid)
        self._keys_by_pod.setdefault(uid, set()).add(info.reference.key)
        return True

    def remove_pod(self, info: ClaimInfo, uid: str) -> None:
        info.pod_uids.discard(uid)
        keys = self._keys_by_pod.get(uid)
        if keys is not None:
            keys.discard(info.reference.key)
            if not keys:
                del self._keys_by_pod[uid]

    def of_pod(self, uid: str) -> list[ClaimInfo]:
        return [self._infos[key] for key in sorted(self._keys_by_pod.get(uid, ()))]

    def pod_uids(self) -> set[str]:
        return set(self._keys_by_pod)

    def has_pod(self, uid: str) -> bool:
        return uid in self._keys_by_pod
