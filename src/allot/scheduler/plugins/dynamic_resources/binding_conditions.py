"""Binding conditions (KEP-5007): whether the devices of an allocation are ready, and until when to wait.

Conditions live in `status.devices[]` of the claim. An entry belongs to an allocated device if driver, pool, device and
share are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from allot.api.claims import (
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from allot.api.identities import SharedDeviceId
from allot.api.meta import Condition


class Ready(NamedTuple):
    """Every condition of every device is True, or there is none."""


class NotReady(NamedTuple):
    """What is missing, and when waiting for it ends; without an allocation time it never does."""

    missing: tuple[str, ...]
    deadline: datetime | None


class BindingFailed(NamedTuple):
    """A device cannot be made ready, or was not in time."""

    message: str
    timed_out: bool
    devices: tuple[SharedDeviceId, ...]


Readiness = Ready | NotReady | BindingFailed


def has_conditions(claim: ResourceClaim) -> bool:
    """Whether some device of the allocation must be made ready before a pod may use it."""
    return any(True for _ in _conditioned(claim))


def readiness(claim: ResourceClaim, timeout: timedelta, now: datetime) -> Readiness:
    """Whether a pod that uses this claim may be bound. A failure counts before anything else."""
    statuses = {_status_id(status): status for status in claim.status.devices}
    missing: list[str] = []
    waiting: list[SharedDeviceId] = []
    for result in _conditioned(claim):
        device = _result_id(result)
        status = statuses.get(device)
        conditions = {each.type: each for each in status.conditions} if status else {}
        failure = _first_true(result.binding_failure_conditions, conditions)
        if failure is not None:
            return BindingFailed(
                f"device binding failed: claim={claim.metadata.name}, reason={failure.reason}, "
                f'message="{failure.message}"',
                timed_out=False,
                devices=(device,),
            )
        lacking = [name for name in result.binding_conditions if not _is_true(conditions, name)]
        if lacking:
            waiting.append(device)
            missing.append(f"{_shown(device)}: {', '.join(lacking)}")
    if not missing:
        return Ready()
    deadline = deadline_of(claim, timeout)
    if deadline is not None and now >= deadline:
        message = f"device binding timeout: claim={claim.metadata.name}"
        return BindingFailed(message, timed_out=True, devices=tuple(waiting))
    return NotReady(tuple(missing), deadline)


def deadline_of(claim: ResourceClaim, timeout: timedelta) -> datetime | None:
    """Counted from the allocation, whoever waits and since when."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return None
    return allocation.allocation_timestamp + timeout


def drivers_with_conditions(claims: Iterable[ResourceClaim]) -> list[str]:
    """The driver of each device that has conditions, for metrics."""
    return [result.driver for claim in claims for result in _conditioned(claim)]


def _conditioned(claim: ResourceClaim) -> Iterator[DeviceRequestAllocationResult]:
    allocation = claim.status.allocation
    if allocation is not None:
        yield from (each for each in allocation.devices.results if each.binding_conditions)


def _result_id(result: DeviceRequestAllocationResult) -> SharedDeviceId:
    return SharedDeviceId(result.driver, result.pool, result.device, result.share_id or "")


def _status_id(status: AllocatedDeviceStatus) -> SharedDeviceId:
    return SharedDeviceId(status.driver, status.pool, status.device, status.share_id or "")


def _first_true(names: Iterable[str], conditions: dict[str, Condition]) -> Condition | None:
    return next((conditions[name] for name in names if _is_true(conditions, name)), None)


def _is_true(conditions: dict[str, Condition], name: str) -> bool:
    return name in conditions and conditions[name].status == "True"


def _shown(device: SharedDeviceId) -> str:
    name = f"{device.driver}/{device.pool}/{device.device}"
    return f"{name} (share {device.share_id})" if device.share_id else name
