"""ResourcePoolStatusRequest (KEP-5677): one stored object, served in two versions.

The types here are the hub: they hold the fields of both versions. Fields marked as the KEP's are unknown to
Kubernetes v1.38; the others are those of its `v1alpha3`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import Final

from allot.api.base import ApiObject, Int32, Int64, Time, always
from allot.api.messages import shortened
from allot.api.meta import Condition, KubernetesObject
from allot.api.quantity import Quantity

DEFAULT_LIMIT: Final = 100
MAX_VALIDATION_ERRORS: Final = 10
MAX_VALIDATION_ERROR_LENGTH: Final = 256
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
CALCULATED: Final = "Calculated status for"
"""How the message of the condition Complete begins in v1.38; the KEP words it differently."""


def finished_at(conditions: Iterable[Condition]) -> datetime | None:
    """When the request was completed or failed, by its conditions."""
    for condition in conditions:
        if condition.type in (COMPLETE, FAILED) and condition.status == "True":
            return condition.last_transition_time
    return None


class PartitionTypeStatus(ApiObject, frozen=True):
    """How many partitions of one type there are, and how many more could be allocated."""

    attribute: str = always(str)
    type: str = always(str)
    total: Int32 | None = None
    allocatable: Int32 | None = None


class ShareableCapacityStatus(ApiObject, frozen=True):
    """One capacity summed over the shareable devices of a pool."""

    name: str = always(str)
    total: Quantity | None = None
    consumed: Quantity | None = None
    available: Quantity | None = None


class ShareableSummaryStatus(ApiObject, frozen=True):
    """How much is left of the devices that several claims can share."""

    fully_available_devices: Int32 | None = None
    partially_available_devices: Int32 | None = None
    capacity: tuple[ShareableCapacityStatus, ...] = ()


class PoolStatus(ApiObject, frozen=True):
    """The devices of one pool, counted."""

    driver: str = always(str)
    pool_name: str = always(str)
    node_name: str | None = None
    generation: Int64 = always(int)
    resource_slice_count: Int32 | None = None
    total_devices: Int32 | None = None
    allocated_devices: Int32 | None = None
    available_devices: Int32 | None = None
    unavailable_devices: Int32 | None = None
    validation_error: str | None = None
    partition_summary: tuple[PartitionTypeStatus, ...] = ()
    shareable_summary: ShareableSummaryStatus | None = None


class ResourcePoolStatusRequestSpec(ApiObject, frozen=True):
    """Which pools to count. Immutable."""

    driver: str = always(str)
    pool_name: str | None = None
    limit: Int32 | None = None
    default_partition_type_attribute: str | None = None
    ttl_seconds_after_complete: Int32 | None = None  # the KEP's


class ResourcePoolStatusRequestStatus(ApiObject, frozen=True):
    """The pool status. Written once."""

    pool_count: Int32 | None = None
    pools: tuple[PoolStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()
    observation_time: Time | None = None  # the KEP's
    validation_errors: tuple[str, ...] = ()  # the KEP's

    @property
    def finished_at(self) -> datetime | None:
        return finished_at(self.conditions)

    @property
    def is_truncated(self) -> bool:
        return (self.pool_count or 0) > len(self.pools)

    @property
    def shown_errors(self) -> tuple[str, ...]:
        """The validation errors of all pools, as one list; without such a list, one entry per pool."""
        if self.validation_errors:
            return self.validation_errors
        errors = (
            f"pool {pool.pool_name}: {pool.validation_error}"
            for pool in self.pools
            if pool.validation_error
        )
        return tuple(
            shortened(error, MAX_VALIDATION_ERROR_LENGTH)
            for error in islice(errors, MAX_VALIDATION_ERRORS)
        )


class ResourcePoolStatusRequest(KubernetesObject, frozen=True):
    """A request for the status of a driver's pools; a controller writes the status once."""

    spec: ResourcePoolStatusRequestSpec = always(ResourcePoolStatusRequestSpec)
    status: ResourcePoolStatusRequestStatus | None = None
