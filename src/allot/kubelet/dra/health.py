"""The health of devices, as drivers report it, and what pods' statuses say about it.

A report holds for 30 seconds, or as long as the driver says; after that the health is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from allot.api.core import Pod
from allot.api.identities import DeviceId, ObjectKey
from allot.kubelet.dra.claim_info import ClaimInfo, PreparedDevice
from allot.kubelet.dra.claim_names import claim_names

DEFAULT_TIMEOUT_SECONDS: Final = 30.0
MAX_MESSAGE: Final = 1024
_CUT: Final = "..."


class HealthStatus(StrEnum):
    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


class DeviceHealth(NamedTuple):
    """A report about one device."""

    health: HealthStatus
    message: str = ""
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS


class _Report(NamedTuple):
    health: HealthStatus
    message: str
    expires_at: float


UNKNOWN: Final = DeviceHealth(HealthStatus.UNKNOWN)


class HealthCache:
    """What drivers reported last about the devices of a node."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._reports: dict[DeviceId, _Report] = {}

    def update(self, driver: str, devices: Mapping[tuple[str, str], DeviceHealth]) -> set[DeviceId]:
        """Take over a report about all devices of a driver, by pool and name: those whose health changed."""
        now = self._now()
        changed = set()
        for (pool, name), reported in devices.items():
            device = DeviceId(driver, pool, name)
            before = self.get(device)
            report = _Report(
                reported.health, shortened(reported.message), now + reported.timeout_seconds
            )
            self._reports[device] = report
            if (before.health, before.message) != (report.health, report.message):
                changed.add(device)
        return changed

    def get(self, device: DeviceId) -> DeviceHealth:
        report = self._reports.get(device)
        if report is None or report.expires_at <= self._now():
            return UNKNOWN
        return DeviceHealth(report.health, report.message)

    def expire(self) -> tuple[set[DeviceId], float | None]:
        """The devices whose reports have expired since, and seconds until the next one expires."""
        now = self._now()
        expired = {device for device, report in self._reports.items() if report.expires_at <= now}
        for device in expired:
            del self._reports[device]
        following = min((report.expires_at for report in self._reports.values()), default=None)
        return expired, None if following is None else following - now

    def forget(self, driver: str) -> set[DeviceId]:
        """The driver is gone: its devices' health is unknown."""
        gone = {device for device in self._reports if device.driver == driver}
        for device in gone:
            del self._reports[device]
        return gone


def shortened(message: str) -> str:
    """A message within the API's limit."""
    raw = message.encode()
    if len(raw) <= MAX_MESSAGE:
        return message
    return raw[: MAX_MESSAGE - len(_CUT)].decode("utf-8", "ignore") + _CUT


# --- statuses of containers ---


def allocated_resources_status(
    pod: Pod,
    container: Mapping[str, Any],
    find: Callable[[ObjectKey], ClaimInfo | None],
    health_of: Callable[[DeviceId], DeviceHealth | None],
) -> list[dict[str, Any]]:
    """`allocatedResourcesStatus` of one container; devices without health information are left out."""
    claims = container.get("resources", {}).get("claims") or ()
    if not claims:
        return []
    names = claim_names(pod)
    statuses = []
    for claim in claims:
        name, request = claim.get("name", ""), claim.get("request", "")
        info = find(ObjectKey(pod.metadata.namespace, names.get(name, "")))
        if info is None:
            continue
        resources = list(_resources(info, request, health_of))
        if resources:
            shown = f"claim:{name}/{request}" if request else f"claim:{name}"
            statuses.append({"name": shown, "resources": resources})
    return statuses


def _resources(
    info: ClaimInfo, request: str, health_of: Callable[[DeviceId], DeviceHealth | None]
) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    for driver, device in _devices(info, request):
        health = health_of(DeviceId(driver, device.pool, device.device))
        resource = resource_id(driver, device)
        if health is None or resource in seen:
            continue
        seen.add(resource)
        entry = {"resourceID": resource, "health": health.health.value}
        yield entry | {"message": health.message} if health.message else entry


def _devices(info: ClaimInfo, request: str) -> Iterator[tuple[str, PreparedDevice]]:
    for driver, devices in info.devices_by_driver.items():
        for device in devices:
            if device.is_for(request):
                yield driver, device


def resource_id(driver: str, device: PreparedDevice) -> str:
    """The first CDI device; without one, the name of the device."""
    if device.cdi_device_ids:
        return device.cdi_device_ids[0]
    return f"{driver}/{device.pool}/{device.device}"


def with_resource_health(
    status: dict[str, Any],
    pod: Pod,
    find: Callable[[ObjectKey], ClaimInfo | None],
    health_of: Callable[[DeviceId], DeviceHealth | None],
) -> dict[str, Any]:
    """A pod's status with the health of its containers' devices."""
    changed = dict(status)
    for spec_field, status_field in (
        ("containers", "containerStatuses"),
        ("initContainers", "initContainerStatuses"),
    ):
        specs: Sequence[Mapping[str, Any]] = pod.get("spec", spec_field, default=())
        statuses: Iterable[Mapping[str, Any]] = status.get(status_field) or ()
        by_name = {spec.get("name"): spec for spec in specs}
        new = [
            _with_health(
                each,
                allocated_resources_status(pod, by_name.get(each.get("name"), {}), find, health_of),
            )
            for each in statuses
        ]
        if new:
            changed[status_field] = new
    return changed


def _with_health(status: Mapping[str, Any], health: list[dict[str, Any]]) -> dict[str, Any]:
    rest = {name: value for name, value in status.items() if name != "allocatedResourcesStatus"}
    return rest | {"allocatedResourcesStatus": health} if health else rest
