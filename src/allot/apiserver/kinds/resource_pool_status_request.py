"""ResourcePoolStatusRequests (KEP-5677)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from allot import features
from allot.api import v1alpha1, v1alpha3
from allot.api.base import replace
from allot.api.pool_status import (
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
)
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.gated_fields import GatedFields, drop_disabled_fields
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.kinds.strategy import StatusStrategy, metadata_for_status_update
from allot.apiserver.printers.column import NAME, NONE, Age, Cell, Column, Table
from allot.features import FeatureGates
from allot.rules import KEP_FIELDS_IN_V1ALPHA3, POOL_STATUS_NOT_SERVED_WHEN_OFF, SERVE_V1ALPHA1
from allot.validation.fields import FieldError
from allot.validation.pool_status_request import (
    is_answered,
    validate_pool_status_request,
    validate_pool_status_request_update,
    validate_pool_status_update,
)


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
        return drop_disabled_fields(spec, old, request.gates, GATED)


GATED: Final[
    tuple[GatedFields[ResourcePoolStatusRequestSpec, ResourcePoolStatusRequestSpec], ...]
] = (
    GatedFields(
        (features.PARTITIONABLE_DEVICES_TYPE,),
        lambda spec: spec.default_partition_type_attribute is not None,
        lambda spec: replace(spec, default_partition_type_attribute=None),
    ),
)


_NO_COUNTS: Final[tuple[Cell, ...]] = ("-",) * 5


def _pool_status_cells(status: ResourcePoolStatusRequestStatus | None, age: Age) -> list[Cell]:
    if status is None:
        return [*_NO_COUNTS, 0, "Pending", NONE]
    pool_count = status.pool_count or 0
    for condition in status.conditions:
        if condition.status != "True":
            continue
        if condition.type == "Failed":
            return [*_NO_COUNTS, pool_count, "Failed", NONE]
        if condition.type == "Complete":
            shown = "Complete"
            if pool_count > len(status.pools):
                shown += f" ({len(status.pools)}/{pool_count} pools)"
            return [*_sums(status), pool_count, shown, age(condition.last_transition_time)]
    return [*_sums(status), pool_count, "Pending", NONE]


def _sums(status: ResourcePoolStatusRequestStatus) -> list[Cell]:
    pools = status.pools
    return [
        str(sum(pool.total_devices or 0 for pool in pools)),
        str(sum(pool.available_devices or 0 for pool in pools)),
        str(sum(pool.allocated_devices or 0 for pool in pools)),
        str(sum(pool.unavailable_devices or 0 for pool in pools)),
        str(sum(pool.validation_error is not None for pool in pools)),
    ]


def _row(request: ResourcePoolStatusRequest, age: Age) -> list[Cell]:
    counts = _pool_status_cells(request.status, age)
    return [request.metadata.name, request.spec.driver, *counts]


def _is_served(gates: FeatureGates) -> bool:
    """v1.38 serves this API whatever its gate says (if alpha versions are on)."""
    return features.RESOURCE_POOL_STATUS in gates or POOL_STATUS_NOT_SERVED_WHEN_OFF not in gates


def _serves_version(version: str, gates: FeatureGates) -> bool:
    return version != "v1alpha1" or SERVE_V1ALPHA1 in gates


def _has_short_names(version: str, gates: FeatureGates) -> bool:
    """v1.38 has no short name for it; KEP-5677, in its own version, has one."""
    return version == "v1alpha1" or KEP_FIELDS_IN_V1ALPHA3 in gates


_KEP_FIELDS: Final = (
    "PoolStatus.sliceCount",
    "ResourcePoolStatusRequestStatus.observationTime",
    "ResourcePoolStatusRequestStatus.totalMatchingPools",
    "ResourcePoolStatusRequestStatus.truncated",
    "ResourcePoolStatusRequestStatus.validationErrors",
)


def _hidden_fields(version: str, gates: FeatureGates) -> Collection[str]:
    """v1.38 does not have the KEP's fields in v1alpha3."""
    is_hidden = version == "v1alpha3" and KEP_FIELDS_IN_V1ALPHA3 not in gates
    return _KEP_FIELDS if is_hidden else ()


DEFINITION: Final = KindDefinition(
    strategy=ResourcePoolStatusRequestStrategy,
    table=Table(
        (
            NAME,
            Column("Driver"),
            Column("Total"),
            Column("Available"),
            Column("Allocated"),
            Column("Unavailable"),
            Column("Errors"),
            Column("Pools", type="integer"),
            Column("Status"),
            Column("Completed"),
        ),
        _row,
    ),
    subresources=(STATUS,),
    plain_tables=("status",),
    returns_deleted_in=("v1alpha3", "v1alpha1"),
    is_served=_is_served,
    serves_version=_serves_version,
    has_short_names=_has_short_names,
    hidden_fields=_hidden_fields,
)
