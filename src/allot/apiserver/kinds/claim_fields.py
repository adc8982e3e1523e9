"""Fields of claims that belong to a feature gate: who uses them, and what is left without them.

While a gate is off its fields are dropped from what clients send, unless the stored object uses the
feature already: then they stay, so that switching a gate off loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

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


# --- who uses a feature ---


def spec_uses_admin_access(spec: ResourceClaimSpec) -> bool:
    return any(
        request.exactly is not None and request.exactly.admin_access is not None
        for request in spec.devices.requests
    )


def _spec_uses_capacity(spec: ResourceClaimSpec) -> bool:
    return any(
        constraint.distinct_attribute is not None for constraint in spec.devices.constraints
    ) or any(asked.capacity is not None for asked in _asked(spec.devices))


def _status_uses_capacity(status: ResourceClaimStatus) -> bool:
    return any(
        result.share_id is not None or result.consumed_capacity for result in _results(status)
    ) or any(device.share_id is not None for device in status.devices)


# --- the spec ---


def drop_disabled_spec_fields(
    spec: ResourceClaimSpec,
    old: ResourceClaimSpec | None,
    old_status: ResourceClaimStatus | None,
    gates: FeatureGates,
) -> ResourceClaimSpec:
    """`spec` without fields whose gate is off. By KEP-6080 derived attributes are not dropped but refused."""
    claim = spec.devices
    if (
        features.DERIVED_ATTRIBUTES not in gates
        and REJECT_DERIVED_ATTRIBUTES_WHEN_OFF not in gates
        and not (old and any(asked.derived_attributes for asked in _asked(old.devices)))
    ):
        claim = _with_asked(claim, derived_attributes=())
    if features.PRIORITIZED_LIST not in gates and not (
        old and any(request.first_available for request in old.devices.requests)
    ):
        claim = _with_requests(claim, lambda request: replace(request, first_available=()))
    if features.ADMIN_ACCESS not in gates and not (
        old
        and (
            spec_uses_admin_access(old)
            or any(result.admin_access is not None for result in _results(old_status))
        )
    ):
        claim = _with_requests(claim, _without_admin_access)
    if features.DEVICE_TAINTS not in gates and not (
        old and any(asked.tolerations for asked in _asked(old.devices))
    ):
        claim = _with_asked(claim, tolerations=())
    if features.CONSUMABLE_CAPACITY not in gates and not (
        old
        and (
            _spec_uses_capacity(old)
            or (old_status is not None and _status_uses_capacity(old_status))
        )
    ):
        claim = _without_capacity(claim)
    return spec if claim is spec.devices else replace(spec, devices=claim)


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


# --- the status ---


def drop_disabled_status_fields(
    status: ResourceClaimStatus,
    old_spec: ResourceClaimSpec,
    old: ResourceClaimStatus,
    gates: FeatureGates,
) -> ResourceClaimStatus:
    """`status` without fields whose gate is off. Tolerations stay: they tell what was tolerated."""
    if features.DEVICE_STATUS not in gates and not old.devices:
        status = replace(status, devices=())
    before = _results(old)
    if features.ADMIN_ACCESS not in gates and not (
        spec_uses_admin_access(old_spec)
        or any(result.admin_access is not None for result in before)
    ):
        status = _with_results(status, lambda result: replace(result, admin_access=None))
    if features.BINDING_CONDITIONS not in gates and not any(
        result.binding_conditions or result.binding_failure_conditions for result in before
    ):
        status = _with_results(
            status,
            lambda result: replace(result, binding_conditions=(), binding_failure_conditions=()),
        )
    if features.CONSUMABLE_CAPACITY not in gates and not (
        _spec_uses_capacity(old_spec) or _status_uses_capacity(old)
    ):
        status = _with_results(
            status, lambda result: replace(result, share_id=None, consumed_capacity={})
        )
        devices = tuple(replace(device, share_id=None) for device in status.devices)
        status = replace(status, devices=devices)
    if features.OPTIONAL_NODE_OPERATIONS not in gates and not any(
        result.skip_node_operations for result in before
    ):
        status = _with_results(status, lambda result: replace(result, skip_node_operations=()))
    return status


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
