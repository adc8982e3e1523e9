"""Device status in claims, by server-side apply: conditions, data and network addresses (KEP-4817)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from allot.api.claims import ResourceClaim
from allot.api.times import written_time
from allot.client.client import Client
from allot.client.resources import RESOURCE_CLAIMS
from allot.driver.kubelet_plugin.claims import AllocatedDevice, ClaimReference
from allot.driver.kubelet_plugin.network_data import NetworkData


@dataclass(frozen=True)
class DeviceCondition:
    """A condition of a device, such as Ready."""

    type: str
    status: bool | None
    """None: unknown."""
    reason: str
    message: str = ""


@dataclass(frozen=True)
class DeviceStatus:
    """What is reported about one device, or one share of it."""

    device: AllocatedDevice
    conditions: tuple[DeviceCondition, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    network: NetworkData | None = None

    def as_json(self, driver: str, now: str, known: Mapping[str, Any]) -> dict[str, Any]:
        """`known` is the entry that the claim has: conditions that stay the same keep their time."""
        entry: dict[str, Any] = {
            "driver": driver,
            "pool": self.device.pool,
            "device": self.device.device,
        }
        if self.device.share_id is not None:
            entry["shareID"] = self.device.share_id
        if self.conditions:
            times = {
                (each["type"], each["status"]): each["lastTransitionTime"]
                for each in known.get("conditions", ())
            }
            entry["conditions"] = [_condition(each, now, times) for each in self.conditions]
        if self.data:
            entry["data"] = dict(self.data)
        if self.network is not None:
            entry["networkData"] = self.network.as_json()
        return entry


class DeviceStatusWriter:
    """Writes the status of one driver's devices. What others write in the same claim stays."""

    def __init__(self, client: Client, driver: str, field_manager: str = "") -> None:
        self._client = client
        self._driver = driver
        self._manager = field_manager or driver

    async def apply(self, claim: ClaimReference, statuses: Iterable[DeviceStatus]) -> ResourceClaim:
        """Replace what this driver reported about the claim. Raises `ApiStatusError`, as for a device that is not allocated."""
        known = await self._known(claim)
        now = written_time(self._client.clock.today())
        devices = [
            status.as_json(self._driver, now, known.get(_identity(status.device), {}))
            for status in statuses
        ]
        return await self._client.apply(
            RESOURCE_CLAIMS,
            claim.key,
            {"metadata": {"uid": claim.uid}, "status": {"devices": devices}},
            self._manager,
            subresource="status",
        )

    async def _known(self, claim: ClaimReference) -> dict[tuple[str, str, str], dict[str, Any]]:
        found = await self._client.get(RESOURCE_CLAIMS.as_raw(), claim.key)
        return {
            (entry["pool"], entry["device"], entry.get("shareID", "")): entry
            for entry in found.data.get("status", {}).get("devices", ())
            if entry["driver"] == self._driver
        }


def _identity(device: AllocatedDevice) -> tuple[str, str, str]:
    return device.pool, device.device, device.share_id or ""


def _condition(
    condition: DeviceCondition, now: str, times: Mapping[tuple[str, str], str]
) -> dict[str, Any]:
    status = "Unknown" if condition.status is None else str(condition.status)
    return {
        "type": condition.type,
        "status": status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": times.get((condition.type, status), now),
    }
