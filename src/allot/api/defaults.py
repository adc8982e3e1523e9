"""Defaults of fields that a request leaves out, applied before validation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from operator import is_
from typing import Final, TypeVar

import msgspec

from allot.api import v1beta1
from allot.api.base import ABSENT, Opaque, is_set, replace, whole_seconds
from allot.api.claims import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
)
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.decoding import to_builtin
from allot.api.meta import Condition, ObjectMeta
from allot.api.pool_status import DEFAULT_LIMIT, ResourcePoolStatusRequest
from allot.api.resource import EQUAL, EXACT_COUNT, DeviceTaint, DeviceToleration
from allot.api.slices import Device, ResourceSlice

MAX_SHARED_SPECS: Final = 256
MAX_SHARED_BYTES: Final = 4096
"""Larger specs are not shared."""

T = TypeVar("T")
Request = TypeVar("Request", ExactDeviceRequest, DeviceSubRequest, v1beta1.DeviceRequest)


def _changed(items: tuple[T, ...], change: Callable[[T], T]) -> tuple[T, ...]:
    """`items` with every one changed; the same tuple if none differs."""
    if not items:
        return items
    changed = tuple(map(change, items))
    return items if all(map(is_, items, changed)) else changed


def _default_metadata(metadata: ObjectMeta) -> ObjectMeta:
    """API times have whole seconds only."""
    if metadata.creation_timestamp is None and metadata.deletion_timestamp is None:
        return metadata
    created = whole_seconds(metadata.creation_timestamp)
    deleted = whole_seconds(metadata.deletion_timestamp)
    if created is metadata.creation_timestamp and deleted is metadata.deletion_timestamp:
        return metadata
    return replace(metadata, creation_timestamp=created, deletion_timestamp=deleted)


def _default_toleration(toleration: DeviceToleration) -> DeviceToleration:
    return toleration if toleration.operator else replace(toleration, operator=EQUAL)


def _default_mode_and_count(request: Request) -> Request:
    if not request.allocation_mode:
        request = replace(request, allocation_mode=EXACT_COUNT)
    if request.allocation_mode == EXACT_COUNT and not request.count:
        request = replace(request, count=1)
    return request


def _default_tolerations(request: Request) -> Request:
    tolerations = _changed(request.tolerations or (), _default_toleration)
    if not tolerations or tolerations is request.tolerations:
        return request
    return replace(request, tolerations=tolerations)


def _default_exact(request: Request) -> Request:
    return _default_tolerations(_default_mode_and_count(request))


def _default_request(request: DeviceRequest) -> DeviceRequest:
    exactly = _default_exact(request.exactly) if request.exactly else None
    alternatives = _changed(request.first_available, _default_exact)
    if exactly is request.exactly and alternatives is request.first_available:
        return request
    return replace(request, exactly=exactly, first_available=alternatives)


def _default_flat_request(request: v1beta1.DeviceRequest) -> v1beta1.DeviceRequest:
    if request.device_class_name:
        request = _default_mode_and_count(request)
    request = _default_tolerations(request)
    return replace(request, first_available=_changed(request.first_available, _default_exact))


def default_claim_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    requests = _changed(spec.devices.requests, _default_request)
    if requests is spec.devices.requests:
        return spec
    return replace(spec, devices=replace(spec.devices, requests=requests))


_encode: Final = msgspec.json.Encoder(enc_hook=to_builtin).encode
_shared_specs: Final[dict[bytes, ResourceClaimSpec]] = {}
"""Specs with defaults by the JSON of those without. When there are too many, all are forgotten."""


def _shared_claim_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """The spec with defaults: claims made from one template get the same one."""
    text = _encode(spec)
    found = _shared_specs.get(text)
    if found is None:
        found = default_claim_spec(spec)
        if len(text) <= MAX_SHARED_BYTES:
            if len(_shared_specs) >= MAX_SHARED_SPECS:
                _shared_specs.clear()
            _shared_specs[text] = found
    return found


def _default_flat_claim_spec(spec: v1beta1.ResourceClaimSpec) -> v1beta1.ResourceClaimSpec:
    requests = _changed(spec.devices.requests, _default_flat_request)
    return replace(spec, devices=replace(spec.devices, requests=requests))


def _default_condition(condition: Condition) -> Condition:
    time = whole_seconds(condition.last_transition_time)
    if time is condition.last_transition_time:
        return condition
    return replace(condition, last_transition_time=time)


def _absent_if_null(opaque: Opaque) -> Opaque:
    return opaque if is_set(opaque) or opaque == ABSENT else ABSENT


def _default_device_status(status: AllocatedDeviceStatus) -> AllocatedDeviceStatus:
    return replace(
        status,
        conditions=_changed(status.conditions, _default_condition),
        data=_absent_if_null(status.data),
    )


def _default_result(result: DeviceRequestAllocationResult) -> DeviceRequestAllocationResult:
    if not result.tolerations:
        return result
    tolerations = _changed(result.tolerations, _default_toleration)
    if tolerations is result.tolerations:
        return result
    return replace(result, tolerations=tolerations)


def _default_allocation(allocation: AllocationResult) -> AllocationResult:
    results = _changed(allocation.devices.results, _default_result)
    time = whole_seconds(allocation.allocation_timestamp)
    if results is allocation.devices.results and time is allocation.allocation_timestamp:
        return allocation
    return replace(
        allocation, devices=replace(allocation.devices, results=results), allocation_timestamp=time
    )


def _default_claim_status(status: ResourceClaimStatus) -> ResourceClaimStatus:
    if status.allocation is None and not status.devices:
        return status
    allocation = _default_allocation(status.allocation) if status.allocation else None
    devices = _changed(status.devices, _default_device_status)
    if allocation is status.allocation and devices is status.devices:
        return status
    return replace(status, allocation=allocation, devices=devices)


def default_claim(claim: ResourceClaim, _: datetime) -> ResourceClaim:
    return ResourceClaim(
        _default_metadata(claim.metadata),
        _shared_claim_spec(claim.spec),
        _default_claim_status(claim.status),
    )


def default_around(
    spec: ResourceClaimSpec, metadata: ObjectMeta, status: ResourceClaimStatus
) -> ResourceClaim:
    """The claim with a spec that has defaults already."""
    return ResourceClaim(_default_metadata(metadata), spec, _default_claim_status(status))


def default_flat_claim(claim: v1beta1.ResourceClaim, _: datetime) -> v1beta1.ResourceClaim:
    return v1beta1.ResourceClaim(
        _default_metadata(claim.metadata),
        _default_flat_claim_spec(claim.spec),
        _default_claim_status(claim.status),
    )


def default_template(template: ResourceClaimTemplate, _: datetime) -> ResourceClaimTemplate:
    spec = replace(template.spec, spec=default_claim_spec(template.spec.spec))
    return ResourceClaimTemplate(_default_metadata(template.metadata), spec)


def default_flat_template(
    template: v1beta1.ResourceClaimTemplate, _: datetime
) -> v1beta1.ResourceClaimTemplate:
    spec = replace(template.spec, spec=_default_flat_claim_spec(template.spec.spec))
    return v1beta1.ResourceClaimTemplate(_default_metadata(template.metadata), spec)


def _default_taint(taint: DeviceTaint, now: datetime) -> DeviceTaint:
    if taint.time_added is None:
        return replace(taint, time_added=now)
    time = whole_seconds(taint.time_added)
    return taint if time is taint.time_added else replace(taint, time_added=time)


def default_slice(slice_: ResourceSlice, now: datetime) -> ResourceSlice:
    def default_device(device: Device) -> Device:
        return replace(
            device, taints=_changed(device.taints, lambda taint: _default_taint(taint, now))
        )

    spec = slice_.spec
    if spec.devices and any(device.taints for device in spec.devices):
        spec = replace(spec, devices=_changed(spec.devices, default_device))
    return ResourceSlice(_default_metadata(slice_.metadata), spec)


def default_flat_slice(slice_: v1beta1.ResourceSlice, now: datetime) -> v1beta1.ResourceSlice:
    def default_device(device: v1beta1.Device) -> v1beta1.Device:
        basic = device.basic
        if basic is None or not basic.taints:
            return device
        taints = _changed(basic.taints, lambda taint: _default_taint(taint, now))
        return replace(device, basic=replace(basic, taints=taints))

    spec = slice_.spec
    if spec.devices:
        spec = replace(spec, devices=_changed(spec.devices, default_device))
    return v1beta1.ResourceSlice(_default_metadata(slice_.metadata), spec)


def default_taint_rule(rule: DeviceTaintRule, now: datetime) -> DeviceTaintRule:
    return DeviceTaintRule(
        _default_metadata(rule.metadata),
        replace(rule.spec, taint=_default_taint(rule.spec.taint, now)),
        replace(rule.status, conditions=_changed(rule.status.conditions, _default_condition)),
    )


def default_class(device_class: DeviceClass, _: datetime) -> DeviceClass:
    return DeviceClass(_default_metadata(device_class.metadata), device_class.spec)


def default_pool_status_request(request: ResourcePoolStatusRequest) -> ResourcePoolStatusRequest:
    """On the hub, because both versions have the same defaults."""
    spec, status = request.spec, request.status
    if spec.limit is None:
        spec = replace(spec, limit=DEFAULT_LIMIT)
    if status is not None:
        status = replace(
            status,
            conditions=_changed(status.conditions, _default_condition),
            observation_time=whole_seconds(status.observation_time),
        )
    return ResourcePoolStatusRequest(_default_metadata(request.metadata), spec, status)
