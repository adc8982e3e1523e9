"""Binding conditions (KEP-5007): whether the devices of an allocation are ready, and until when to wait.

Conditions live in `status.devices[]` of the claim. An entry belongs to an allocated device if driver, pool, device and
share are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from allot.api.claims import (
    AllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from allot.api.identities import DeviceId, SharedDeviceId
from allot.api.meta import Condition
from allot.features import BINDING_CONDITIONS


class Ready(NamedTuple):
    """Every condition of every device is True; also when no device has conditions."""


class NotReady(NamedTuple):
    """The missing conditions, and when the wait ends; None if its start is unknown."""

    missing: tuple[str, ...]
    deadline: datetime | None


BINDING_FAILED: Final = "device binding failed"
BINDING_TIMEOUT: Final = "device binding timeout"
"""How Kubernetes says that waiting has ended; events of pods have it."""


class BindingFailed(NamedTuple):
    """A device cannot be made ready, or was not in time."""

    message: str
    timed_out: bool
    devices: tuple[SharedDeviceId, ...]


Readiness = Ready | NotReady | BindingFailed


def waits_for_binding(allocation: AllocationResult) -> bool:
    """Whether some device of an allocation must be made ready before a pod may use it."""
    return any(result.binding_conditions for result in allocation.devices.results)


def has_conditions(claim: ResourceClaim) -> bool:
    """Whether some device of the allocation must be made ready before a pod may use it."""
    allocation = claim.status.allocation
    if allocation is not None:
        for each in allocation.devices.results:
            if each.binding_conditions or each.binding_failure_conditions:
                return True
    return False


def dropped_conditions(
    decided: Iterable[ResourceClaim], stored: Iterable[ResourceClaim]
) -> tuple[SharedDeviceId, ...]:
    """The devices that were to be waited for, and that are stored without conditions."""
    kept = {claim.key: {each.device_id for each in _waited_for(claim)} for claim in stored}
    return tuple(
        result.shared_device_id
        for claim in decided
        if claim.key in kept
        for result in _waited_for(claim)
        if result.device_id not in kept[claim.key]
    )


def _waited_for(claim: ResourceClaim) -> Iterator[DeviceRequestAllocationResult]:
    return (result for result in _conditioned(claim) if result.binding_conditions)


def readiness(
    claim: ResourceClaim, timeout: timedelta, now: datetime, since: datetime | None = None
) -> Readiness:
    """Whether a pod that uses this claim may be bound. A failure counts before anything else.

    `since` is when waiting began, for allocations that do not say when they were made.
    """
    missing: list[str] = []
    waiting: list[ExaminedDevice] = []
    for examined in examined_devices(claim):
        device, failure, lacking, _ = examined
        if failure is not None:
            return BindingFailed(
                f"{BINDING_FAILED}: claim={claim.metadata.name}, reason={failure.reason}, "
                f'message="{failure.message}"; {shown_device(device)}: {failure.type}',
                timed_out=False,
                devices=(device,),
            )
        if lacking:
            waiting.append(examined)
            missing.append(f"{shown_device(device)}: {', '.join(lacking)}")
    if not missing:
        return Ready()
    deadline = deadline_of(claim, timeout, since)
    if deadline is not None and now >= deadline:
        return BindingFailed(
            f"{BINDING_TIMEOUT}: claim={claim.metadata.name}; {_overdue(waiting, timeout)}",
            timed_out=True,
            devices=tuple(examined.device for examined in waiting),
        )
    return NotReady(tuple(missing), deadline)


def _overdue(waiting: Sequence[ExaminedDevice], timeout: timedelta) -> str:
    """What was not there in time: devices, conditions, and for how long they were waited for."""
    devices = "; ".join(
        f"{shown_device(examined.device)}: {' and '.join(condition_states(examined))}"
        for examined in waiting
    )
    return f"not ready within {shown_seconds(timeout)}: {devices}"


def condition_states(examined: ExaminedDevice) -> Iterator[str]:
    """The state of each condition that a device lacks."""
    reported = {condition.type: condition for condition in examined.reported}
    for name in examined.lacking:
        condition = reported.get(name)
        yield f"{name} was never reported" if condition is None else _as_reported(condition)


def _as_reported(condition: Condition) -> str:
    why = ": ".join(filter(None, (condition.reason, condition.message)))
    return f"{condition.type} is {condition.status}{f' ({why})' if why else ''}"


def shown_seconds(time: timedelta) -> str:
    return f"{time.total_seconds():g} s"


def why_not_usable_when_off(claim: ResourceClaim) -> str:
    """Why a pod cannot have a claim whose devices are not ready while no pod may wait for them; empty if it can."""
    for device, failure, lacking, _ in examined_devices(claim):
        if failure is not None or lacking:
            return (
                f"device {shown_device(device)} of claim {claim.metadata.name} is not ready, and the "
                f"{BINDING_CONDITIONS} feature is disabled"
            )
    return ""


def devices_being_attached(claims: Iterable[ResourceClaim]) -> set[DeviceId]:
    """The devices that are allocated, must be made ready for that, and are not yet."""
    return {
        examined.device.device_id
        for claim in claims
        for examined in examined_devices(claim)
        if examined.lacking and examined.failure is None
    }


class ExaminedDevice(NamedTuple):
    """A device with conditions: the failure that it reports, if any, and what is not True yet."""

    device: SharedDeviceId
    failure: Condition | None
    lacking: tuple[str, ...]
    reported: tuple[Condition, ...]
    """Those of the lacking ones that were reported, as False or Unknown."""


def examined_devices(claim: ResourceClaim) -> Iterator[ExaminedDevice]:
    """The allocated devices that must be made ready, each with what is known about it."""
    statuses = {status.shared_device_id: status for status in claim.status.devices}
    for result in _conditioned(claim):
        device = result.shared_device_id
        status = statuses.get(device)
        conditions = {each.type: each for each in status.conditions} if status else {}
        lacking = tuple(
            name for name in result.binding_conditions if not _is_true(conditions, name)
        )
        yield ExaminedDevice(
            device,
            _first_true(result.binding_failure_conditions, conditions),
            lacking,
            tuple(conditions[name] for name in lacking if name in conditions),
        )


def deadline_of(
    claim: ResourceClaim, timeout: timedelta, since: datetime | None = None
) -> datetime | None:
    """The end of the wait: counted from the allocation, or from `since` where that time is unknown."""
    allocation = claim.status.allocation
    allocated_at = allocation.allocation_timestamp if allocation is not None else None
    start = allocated_at or since
    return None if start is None else start + timeout


def drivers_with_conditions(claims: Iterable[ResourceClaim]) -> list[str]:
    """The driver of each device that has conditions, for metrics."""
    return [result.driver for claim in claims for result in _conditioned(claim)]


def _conditioned(claim: ResourceClaim) -> Iterator[DeviceRequestAllocationResult]:
    allocation = claim.status.allocation
    if allocation is not None:
        for each in allocation.devices.results:
            if each.binding_conditions or each.binding_failure_conditions:
                yield each


def _first_true(names: Iterable[str], conditions: dict[str, Condition]) -> Condition | None:
    return next((conditions[name] for name in names if _is_true(conditions, name)), None)


def _is_true(conditions: dict[str, Condition], name: str) -> bool:
    return name in conditions and conditions[name].status == "True"


def shown_device(device: SharedDeviceId) -> str:
    """As `driver/pool/device`, and its share if it has one."""
    name = f"{device.driver}/{device.pool}/{device.device}"
    return f"{name} (share {device.share_id})" if device.share_id else name
