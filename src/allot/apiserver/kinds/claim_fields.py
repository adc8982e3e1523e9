"""The fields of claims and claim templates behind feature gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, Protocol

from allot import features
from allot.api.base import replace
from allot.api.claims import (
    AllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from allot.apiserver.kinds.gated_fields import GatedFields, drop_disabled_fields
from allot.features import FeatureGates
from allot.rules import REJECT_DERIVED_ATTRIBUTES_WHEN_OFF


def _asked(claim: DeviceClaim) -> Iterator[ExactDeviceRequest | DeviceSubRequest]:
    for request in claim.requests:
        if request.exactly is not None:
            yield request.exactly
        yield from request.first_available


def _results(status: ResourceClaimStatus | None) -> tuple[DeviceRequestAllocationResult, ...]:
    if status is None or status.allocation is None:
        return ()
    return status.allocation.devices.results


class StoredClaim(Protocol):
    """What tells whether a feature is in use: a stored claim, or that of a stored template."""

    @property
    def spec(self) -> ResourceClaimSpec: ...
    @property
    def status(self) -> ResourceClaimStatus | None: ...


class StoredTemplate(NamedTuple):
    """The claim of a stored template, which has no status."""

    spec: ResourceClaimSpec
    status: ResourceClaimStatus | None = None


# --- use of a feature ---


def _uses_admin_access(stored: StoredClaim) -> bool:
    return any(
        request.exactly is not None and request.exactly.admin_access is not None
        for request in stored.spec.devices.requests
    ) or any(result.admin_access is not None for result in _results(stored.status))


def _uses_capacity(stored: StoredClaim) -> bool:
    devices, status = stored.spec.devices, stored.status
    return (
        any(constraint.distinct_attribute is not None for constraint in devices.constraints)
        or any(asked.capacity is not None for asked in _asked(devices))
        or any(
            result.share_id is not None or result.consumed_capacity for result in _results(status)
        )
        or (status is not None and any(device.share_id is not None for device in status.devices))
    )


def _any_result(
    uses: Callable[[DeviceRequestAllocationResult], Any],
) -> Callable[[StoredClaim], bool]:
    return lambda stored: any(map(uses, _results(stored.status)))


def _any_new_result(
    uses: Callable[[DeviceRequestAllocationResult], Any],
) -> Callable[[ResourceClaimStatus], bool]:
    return lambda status: any(map(uses, _results(status)))


def _any_asked(
    uses: Callable[[ExactDeviceRequest | DeviceSubRequest], Any],
) -> Callable[[StoredClaim], bool]:
    return lambda stored: any(map(uses, _asked(stored.spec.devices)))


# --- the spec ---


def _with_requests(
    claim: DeviceClaim, change: Callable[[DeviceRequest], DeviceRequest]
) -> DeviceClaim:
    return replace(claim, requests=tuple(map(change, claim.requests)))


def _with_asked(claim: DeviceClaim, **changes: Any) -> DeviceClaim:
    """The same change to every `exactly` and every alternative."""

    def change_request(request: DeviceRequest) -> DeviceRequest:
        return replace(
            request,
            exactly=replace(request.exactly, **changes) if request.exactly else None,
            first_available=tuple(
                replace(alternative, **changes) for alternative in request.first_available
            ),
        )

    return _with_requests(claim, change_request)


def _without_admin_access(request: DeviceRequest) -> DeviceRequest:
    if request.exactly is None:
        return request
    return replace(request, exactly=replace(request.exactly, admin_access=None))


def _without_capacity(claim: DeviceClaim) -> DeviceClaim:
    constraints = tuple(
        replace(constraint, distinct_attribute=None) for constraint in claim.constraints
    )
    return replace(_with_asked(claim, capacity=None), constraints=constraints)


SPEC_FIELDS: Final[tuple[GatedFields[DeviceClaim, StoredClaim], ...]] = (
    GatedFields(
        (features.DERIVED_ATTRIBUTES,),
        _any_asked(lambda asked: asked.derived_attributes),
        lambda claim: _with_asked(claim, derived_attributes=()),
        rejected_by=REJECT_DERIVED_ATTRIBUTES_WHEN_OFF,  # KEP-6080
    ),
    GatedFields(
        (features.PRIORITIZED_LIST,),
        lambda stored: any(request.first_available for request in stored.spec.devices.requests),
        lambda claim: _with_requests(claim, lambda request: replace(request, first_available=())),
    ),
    GatedFields(
        (features.ADMIN_ACCESS,),
        _uses_admin_access,
        lambda claim: _with_requests(claim, _without_admin_access),
    ),
    GatedFields(
        (features.DEVICE_TAINTS,),
        _any_asked(lambda asked: asked.tolerations),
        lambda claim: _with_asked(claim, tolerations=()),
    ),
    GatedFields((features.CONSUMABLE_CAPACITY,), _uses_capacity, _without_capacity),
)


def drop_disabled_spec_fields(
    spec: ResourceClaimSpec, stored: StoredClaim | None, gates: FeatureGates
) -> ResourceClaimSpec:
    """`spec` without fields whose gate is off."""
    claim = drop_disabled_fields(spec.devices, stored, gates, SPEC_FIELDS)
    return spec if claim is spec.devices else replace(spec, devices=claim)


# --- the status ---


def _with_results(
    status: ResourceClaimStatus,
    change: Callable[[DeviceRequestAllocationResult], DeviceRequestAllocationResult],
) -> ResourceClaimStatus:
    allocation = status.allocation
    if allocation is None:
        return status
    results = tuple(map(change, allocation.devices.results))
    changed: AllocationResult = replace(
        allocation, devices=replace(allocation.devices, results=results)
    )
    return replace(status, allocation=changed)


def _without_shares(status: ResourceClaimStatus) -> ResourceClaimStatus:
    status = _with_results(
        status, lambda result: replace(result, share_id=None, consumed_capacity={})
    )
    devices = tuple(replace(device, share_id=None) for device in status.devices)
    return replace(status, devices=devices)


STATUS_FIELDS: Final[tuple[GatedFields[ResourceClaimStatus, StoredClaim], ...]] = (
    GatedFields(
        (features.DEVICE_STATUS,),
        lambda stored: bool(stored.status and stored.status.devices),
        lambda status: replace(status, devices=()),
    ),
    GatedFields(
        (features.ADMIN_ACCESS,),
        _uses_admin_access,
        lambda status: _with_results(status, lambda result: replace(result, admin_access=None)),
    ),
    GatedFields(
        (features.BINDING_CONDITIONS,),
        _any_result(lambda result: result.binding_conditions or result.binding_failure_conditions),
        lambda status: _with_results(
            status,
            lambda result: replace(result, binding_conditions=(), binding_failure_conditions=()),
        ),
    ),
    GatedFields((features.CONSUMABLE_CAPACITY,), _uses_capacity, _without_shares),
    GatedFields(
        (features.OPTIONAL_NODE_OPERATIONS,),
        _any_result(lambda result: result.skip_node_operations),
        lambda status: _with_results(
            status, lambda result: replace(result, skip_node_operations=())
        ),
        _any_new_result(lambda result: result.skip_node_operations),
    ),
)
"""Tolerations are not dropped: they record what was tolerated."""


def drop_disabled_status_fields(
    status: ResourceClaimStatus, stored: StoredClaim, gates: FeatureGates
) -> ResourceClaimStatus:
    """`status` without fields whose gate is off."""
    return drop_disabled_fields(status, stored, gates, STATUS_FIELDS)
