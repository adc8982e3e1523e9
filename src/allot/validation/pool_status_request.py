"""ResourcePoolStatusRequest (KEP-5677): the spec, and the status that is written once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from allot.api.pool_status import (
    MAX_VALIDATION_ERROR_LENGTH,
    MAX_VALIDATION_ERRORS,
    PartitionTypeStatus,
    PoolStatus,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
    ShareableCapacityStatus,
    ShareableSummaryStatus,
)
from allot.features import FeatureGates
from allot.rules import KEP_FIELDS_IN_V1ALPHA3
from allot.validation.conditions import validate_conditions
from allot.validation.fields import FieldError, FieldPath, invalid, required, too_long
from allot.validation.formats import byte_length, caseless_subdomain_problems
from allot.validation.lists import duplicates, validate_items
from allot.validation.metadata import IMMUTABLE, validate_metadata, validate_metadata_update
from allot.validation.names import (
    validate_declared_driver_name,
    validate_declared_pool_name,
    validate_fully_qualified_name,
    validate_subdomain,
)
from allot.validation.resource_claim import SPEC

MAX_LIMIT: Final = 1000
MAX_POOLS: Final = 1000
MAX_CONDITIONS: Final = 10
MAX_SUMMARIES: Final = 32
MAX_VALIDATION_ERROR: Final = 256

STATUS: Final = FieldPath("status")
_NAMES_IN_V1ALPHA1: Final = {"poolCount": "totalMatchingPools", "resourceSliceCount": "sliceCount"}


def validate_pool_status_request(
    request: ResourcePoolStatusRequest, version: str
) -> Iterator[FieldError]:
    yield from validate_metadata(request.metadata, namespaced=False)
    yield from _validate_spec(request.spec, version)


def validate_pool_status_request_update(
    new: ResourcePoolStatusRequest, old: ResourcePoolStatusRequest
) -> Iterator[FieldError]:
    yield from validate_metadata_update(new.metadata, old.metadata)
    if new.spec != old.spec:
        yield invalid(SPEC, None, IMMUTABLE)


def validate_pool_status_update(
    new: ResourcePoolStatusRequest,
    old: ResourcePoolStatusRequest,
    version: str,
    gates: FeatureGates,
) -> Iterator[FieldError]:
    """A write to the status: allowed once, and then only if it changes nothing."""
    yield from validate_metadata_update(new.metadata, old.metadata)
    if is_answered(old, gates):
        if new.status == old.status:
            return
        yield invalid(STATUS, new.status, IMMUTABLE)
    if new.status is not None:
        yield from _validate_status(new.status, version)


def is_answered(request: ResourcePoolStatusRequest, gates: FeatureGates) -> bool:
    """Whether the status is final. In v1.38 any status is final, in the KEP one with an observationTime."""
    if request.status is None:
        return False
    return KEP_FIELDS_IN_V1ALPHA3 not in gates or request.status.observation_time is not None


def _validate_spec(spec: ResourcePoolStatusRequestSpec, version: str) -> Iterator[FieldError]:
    driver, driver_path = spec.driver, SPEC / "driver"
    if version == "v1alpha1" and driver.count("/") == 1:
        # The KEP writes drivers as `example.com/gpu`; its version takes them. They match no pool.
        driver = driver.replace("/", ".")
    for error in validate_declared_driver_name(driver, driver_path, max_length=None):
        yield error._replace(value=spec.driver) if error.value == driver else error
    if spec.pool_name is not None:
        yield from validate_declared_pool_name(spec.pool_name, SPEC / "poolName")
    if spec.limit is not None:
        yield from _validate_at_least(spec.limit, 1, SPEC / "limit")
        if spec.limit > MAX_LIMIT:
            yield invalid(
                SPEC / "limit",
                spec.limit,
                f"must be less than or equal to {MAX_LIMIT}",
                declared=True,
            )
    if spec.default_partition_type_attribute is not None:
        yield from validate_fully_qualified_name(
            spec.default_partition_type_attribute, SPEC / "defaultPartitionTypeAttribute"
        )
    if spec.ttl_seconds_after_complete is not None:
        yield from _validate_at_least(
            spec.ttl_seconds_after_complete, 0, SPEC / "ttlSecondsAfterComplete"
        )


def _validate_at_least(value: int, least: int, path: FieldPath) -> Iterator[FieldError]:
    if value < least:
        yield invalid(path, value, f"must be greater than or equal to {least}", declared=True)


def _validate_status(status: ResourcePoolStatusRequestStatus, version: str) -> Iterator[FieldError]:
    count_path = STATUS / _field_name("poolCount", version)
    if status.pool_count is None:
        yield required(count_path, declared=True)
    else:
        yield from _validate_at_least(status.pool_count, 0, count_path)
    validate_pool = partial(_validate_pool, version)
    yield from validate_items(status.pools, STATUS / "pools", MAX_POOLS, validate_pool)
    yield from validate_conditions(
        status.conditions, STATUS / "conditions", MAX_CONDITIONS, limit_declared=True
    )
    yield from validate_items(
        status.validation_errors,
        STATUS / "validationErrors",
        MAX_VALIDATION_ERRORS,
        _validate_error_text,
    )


def _field_name(name: str, version: str) -> str:
    """What the request's version calls a field of v1alpha3."""
    return _NAMES_IN_V1ALPHA1.get(name, name) if version == "v1alpha1" else name


def _validate_error_text(text: str, path: FieldPath) -> Iterator[FieldError]:
    if len(text) > MAX_VALIDATION_ERROR_LENGTH:
        yield too_long(path, MAX_VALIDATION_ERROR_LENGTH, "characters", declared=True)


def _validate_pool(version: str, pool: PoolStatus, path: FieldPath) -> Iterator[FieldError]:
    if not pool.driver:
        yield required(path / "driver", declared=True)
    for problem in caseless_subdomain_problems(pool.driver) if pool.driver else ():
        yield invalid(path / "driver", pool.driver, problem, declared=True)
    if not pool.pool_name:
        yield required(path / "poolName", declared=True)
    else:
        yield from validate_declared_pool_name(pool.pool_name, path / "poolName")
    if not pool.generation and version != "v1alpha1":
        # Slices may have the generation 0, which Kubernetes takes for none here. The KEP does not.
        yield required(path / "generation", declared=True)
    else:
        yield from _validate_at_least(pool.generation, 0, path / "generation")
    if pool.node_name is not None:
        yield from validate_subdomain(pool.node_name, path / "nodeName", declared=True)
    counts = (
        (_field_name("resourceSliceCount", version), pool.resource_slice_count, 1),
        ("totalDevices", pool.total_devices, 0),
        ("allocatedDevices", pool.allocated_devices, 0),
        ("availableDevices", pool.available_devices, 0),
        ("unavailableDevices", pool.unavailable_devices, 0),
    )
    for name, count, least in counts:
        if count is not None and count < least:
            yield from _validate_at_least(count, least, path / name)
    if pool.validation_error is not None and (
        byte_length(pool.validation_error) > MAX_VALIDATION_ERROR
    ):
        yield too_long(path / "validationError", MAX_VALIDATION_ERROR, declared=True)
    yield from _validate_partitions(pool.partition_summary, path / "partitionSummary")
    if pool.shareable_summary is not None:
        yield from _validate_shareable(pool.shareable_summary, path / "shareableSummary")


def _validate_partitions(
    summary: tuple[PartitionTypeStatus, ...], path: FieldPath
) -> Iterator[FieldError]:
    yield from validate_items(summary, path, MAX_SUMMARIES, _validate_partition)
    if len(summary) <= MAX_SUMMARIES:
        yield from duplicates(summary, path, lambda item: (item.attribute, item.type))


def _validate_partition(partition: PartitionTypeStatus, path: FieldPath) -> Iterator[FieldError]:
    yield from _validate_present(partition.attribute or None, path / "attribute")
    yield from _validate_present(partition.type or None, path / "type")
    yield from _validate_count(partition.total, path / "total")
    yield from _validate_count(partition.allocatable, path / "allocatable")


def _validate_present(value: object, path: FieldPath) -> Iterator[FieldError]:
    if value is None:
        yield required(path, declared=True)


def _validate_count(count: int | None, path: FieldPath) -> Iterator[FieldError]:
    if count is None:
        yield required(path, declared=True)
    else:
        yield from _validate_at_least(count, 0, path)


def _validate_shareable(summary: ShareableSummaryStatus, path: FieldPath) -> Iterator[FieldError]:
    yield from _validate_count(summary.fully_available_devices, path / "fullyAvailableDevices")
    yield from _validate_count(
        summary.partially_available_devices, path / "partiallyAvailableDevices"
    )
    # Statuses have many thousands of these; almost all are complete.
    if len(summary.capacity) > MAX_SUMMARIES or not all(map(_is_complete, summary.capacity)):
        yield from validate_items(
            summary.capacity, path / "capacity", MAX_SUMMARIES, _validate_shareable_capacity
        )


def _is_complete(capacity: ShareableCapacityStatus) -> bool:
    return (
        bool(capacity.name)
        and capacity.total is not None
        and capacity.consumed is not None
        and capacity.available is not None
    )


def _validate_shareable_capacity(
    capacity: ShareableCapacityStatus, path: FieldPath
) -> Iterator[FieldError]:
    yield from _validate_present(capacity.name or None, path / "name")
    for name in ("total", "consumed", "available"):
        yield from _validate_present(getattr(capacity, name), path / name)
