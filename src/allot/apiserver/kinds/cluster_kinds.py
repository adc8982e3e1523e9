"""The cluster-wide kinds: ResourceSlice, DeviceClass, DeviceTaintRule, ResourcePoolStatusRequest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, TypeVar

from allot import features
from allot.api import v1alpha1, v1alpha3
from allot.api.base import replace
from allot.api.classes import DeviceClass, DeviceTaintRule, DeviceTaintRuleStatus
from allot.api.pool_status import (
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
)
from allot.api.slices import ResourceSlice
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.kinds.slice_fields import drop_disabled_slice_fields
from allot.apiserver.kinds.strategy import (
    StatusStrategy,
    Strategy,
    metadata_for_status_update,
)
from allot.rules import KEP_FIELDS_IN_V1ALPHA3
from allot.validation.device_class import validate_class, validate_class_update
from allot.validation.device_taint_rule import (
    validate_taint_rule,
    validate_taint_rule_status_update,
    validate_taint_rule_update,
)
from allot.validation.fields import FieldError
from allot.validation.pool_status_request import (
    is_answered,
    validate_pool_status_request,
    validate_pool_status_request_update,
    validate_pool_status_update,
)
from allot.validation.resource_slice import validate_slice, validate_slice_update

Counted = TypeVar("Counted", ResourceSlice, DeviceClass, DeviceTaintRule)
"""The kinds whose specs have generations."""


class ResourceSliceStrategy(Strategy[ResourceSlice]):
    """Counts generations of the spec as it was sent, before gated fields are dropped."""

    def prepare_create(self, new: ResourceSlice, request: WriteRequest) -> ResourceSlice:
        spec = drop_disabled_slice_fields(new.spec, None, request.gates)
        return _with_generation(replace(new, spec=spec), 1)

    def validate_create(self, new: ResourceSlice, request: WriteRequest) -> Iterator[FieldError]:
        return validate_slice(new, request.context)

    def prepare_update(
        self, new: ResourceSlice, old: ResourceSlice, request: WriteRequest
    ) -> ResourceSlice:
        changed = new.spec != old.spec
        spec = drop_disabled_slice_fields(new.spec, old.spec, request.gates)
        return _with_generation(replace(new, spec=spec), old.metadata.generation + changed)

    def validate_update(
        self, new: ResourceSlice, old: ResourceSlice, request: WriteRequest
    ) -> Iterator[FieldError]:
        return validate_slice_update(new, old, request.context)

    def warnings(self, new: ResourceSlice) -> list[str]:
        driver = new.spec.driver
        if driver == driver.lower():
            return []
        why = f'driver names should be lowercase; "{driver}" contains uppercase characters'
        return [f"spec.driver: {why}"]

    def flat_path(self, path: str) -> str:
        return _in_device.sub(r"\1.basic.", path)


_in_device: Final = re.compile(r"^(spec\.devices\[\d+\])\.(?!name$)")


class DeviceClassStrategy(Strategy[DeviceClass]):
    """Counts generations of the spec as it will be stored."""

    def prepare_create(self, new: DeviceClass, request: WriteRequest) -> DeviceClass:
        return _with_generation(self._with_enabled_fields(new, None, request), 1)

    def validate_create(self, new: DeviceClass, request: WriteRequest) -> Iterator[FieldError]:
        return validate_class(new, request.context)

    def prepare_update(
        self, new: DeviceClass, old: DeviceClass, request: WriteRequest
    ) -> DeviceClass:
        new = self._with_enabled_fields(new, old, request)
        return _with_generation(new, old.metadata.generation + (new.spec != old.spec))

    def validate_update(
        self, new: DeviceClass, old: DeviceClass, request: WriteRequest
    ) -> Iterator[FieldError]:
        return validate_class_update(new, old, request.context)

    def _with_enabled_fields(
        self, new: DeviceClass, old: DeviceClass | None, request: WriteRequest
    ) -> DeviceClass:
        if features.EXTENDED_RESOURCE in request.gates or (
            old is not None and old.spec.extended_resource_name is not None
        ):
            return new
        return replace(new, spec=replace(new.spec, extended_resource_name=None))


class DeviceTaintRuleStrategy(StatusStrategy[DeviceTaintRule]):
    """A taint that changes its effect counts as added anew."""

    def prepare_create(self, new: DeviceTaintRule, request: WriteRequest) -> DeviceTaintRule:
        return _with_generation(replace(new, status=DeviceTaintRuleStatus()), 1)

    def validate_create(self, new: DeviceTaintRule, request: WriteRequest) -> Iterator[FieldError]:
        return validate_taint_rule(new)

    def prepare_update(
        self, new: DeviceTaintRule, old: DeviceTaintRule, request: WriteRequest
    ) -> DeviceTaintRule:
        taint, before = new.spec.taint, old.spec.taint
        if taint.effect != before.effect and taint.time_added == before.time_added:
            taint = replace(taint, time_added=request.now)
        new = replace(new, spec=replace(new.spec, taint=taint), status=old.status)
        return _with_generation(new, old.metadata.generation + (new.spec != old.spec))

    def validate_update(
        self, new: DeviceTaintRule, old: DeviceTaintRule, request: WriteRequest
    ) -> Iterator[FieldError]:
        needs = not self.accepts_unconditional_update(request.version)
        return validate_taint_rule_update(new, old, needs_resource_version=needs)

    def prepare_status_update(
        self, new: DeviceTaintRule, old: DeviceTaintRule, request: WriteRequest
    ) -> DeviceTaintRule:
        metadata = metadata_for_status_update(new.metadata, old.metadata)
        return replace(new, metadata=metadata, spec=old.spec)

    def validate_status_update(
        self, new: DeviceTaintRule, old: DeviceTaintRule, request: WriteRequest
    ) -> Iterator[FieldError]:
        needs = not self.accepts_unconditional_update(request.version)
        return validate_taint_rule_status_update(new, old, needs_resource_version=needs)

    def accepts_unconditional_update(self, version: str) -> bool:
        return version != "v1"


def _restore_unseen(
    new: ResourcePoolStatusRequest, old: ResourcePoolStatusRequest, request: WriteRequest
) -> ResourcePoolStatusRequest:
    if request.version == "v1alpha1":
        return v1alpha1.restore_unseen(new, old)
    return v1alpha3.restore_unseen(new, old)


def _with_observation_time(
    status: ResourcePoolStatusRequestStatus | None,
    old: ResourcePoolStatusRequest,
    gates: features.FeatureGates,
) -> ResourcePoolStatusRequestStatus | None:
    """A status of v1.38 tells in its condition when it was observed. Under v1.38's rules it tells nothing else."""
    if status is None:
        return None
    if KEP_FIELDS_IN_V1ALPHA3 not in gates:
        return replace(status, observation_time=None, validation_errors=())
    if status.observation_time is not None or is_answered(old, gates):
        return status
    return replace(status, observation_time=status.finished_at)


class ResourcePoolStatusRequestStrategy(StatusStrategy[ResourcePoolStatusRequest]):
    """A question that cannot be changed and an answer that is written once."""

    def prepare_create(
        self, new: ResourcePoolStatusRequest, request: WriteRequest
    ) -> ResourcePoolStatusRequest:
        return replace(new, spec=self._with_enabled_fields(new.spec, None, request), status=None)

    def validate_create(
        self, new: ResourcePoolStatusRequest, request: WriteRequest
    ) -> Iterator[FieldError]:
        return validate_pool_status_request(new, request.version)

    def prepare_update(
        self,
        new: ResourcePoolStatusRequest,
        old: ResourcePoolStatusRequest,
        request: WriteRequest,
    ) -> ResourcePoolStatusRequest:
        new = _restore_unseen(new, old, request)
        spec = self._with_enabled_fields(new.spec, old.spec, request)
        return replace(new, spec=spec, status=old.status)

    def validate_update(
        self,
        new: ResourcePoolStatusRequest,
        old: ResourcePoolStatusRequest,
        request: WriteRequest,
    ) -> Iterator[FieldError]:
        return validate_pool_status_request_update(new, old)

    def prepare_status_update(
        self,
        new: ResourcePoolStatusRequest,
        old: ResourcePoolStatusRequest,
        request: WriteRequest,
    ) -> ResourcePoolStatusRequest:
        if request.version == "v1alpha3":
            new = replace(new, status=_with_observation_time(new.status, old, request.gates))
        new = _restore_unseen(new, old, request)
        metadata = metadata_for_status_update(new.metadata, old.metadata)
        return replace(new, metadata=metadata, spec=old.spec)

    def validate_status_update(
        self,
        new: ResourcePoolStatusRequest,
        old: ResourcePoolStatusRequest,
        request: WriteRequest,
    ) -> Iterator[FieldError]:
        return validate_pool_status_update(new, old, request.version, request.gates)

    def accepts_unconditional_update(self, version: str) -> bool:
        return False

    def _with_enabled_fields(
        self,
        spec: ResourcePoolStatusRequestSpec,
        old: ResourcePoolStatusRequestSpec | None,
        request: WriteRequest,
    ) -> ResourcePoolStatusRequestSpec:
        if features.PARTITIONABLE_DEVICES_TYPE in request.gates or (
            old is not None and old.default_partition_type_attribute is not None
        ):
            return spec
        return replace(spec, default_partition_type_attribute=None)


def _with_generation(obj: Counted, generation: int) -> Counted:
    return replace(obj, metadata=replace(obj.metadata, generation=generation))
