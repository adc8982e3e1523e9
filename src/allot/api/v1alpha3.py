"""ResourcePoolStatusRequest as Kubernetes v1.38 serves it, and conversion to and from the hub.

A status with an observation time also carries the other fields of KEP-5677's status, which v1.38 does not know:
a union of both versions, for clients that see this version only.
"""

from __future__ import annotations

from allot.api import pool_status
from allot.api.base import ApiObject, Int32, Time, always, replace
from allot.api.meta import Condition, KubernetesObject
from allot.api.pool_status import ResourcePoolStatusRequest as HubRequest
from allot.api.pool_status import ResourcePoolStatusRequestSpec as HubSpec
from allot.api.pool_status import ResourcePoolStatusRequestStatus as HubStatus


class ResourcePoolStatusRequestSpec(ApiObject, frozen=True):
    """Which pools to count. Immutable."""

    driver: str = always(str)
    pool_name: str | None = None
    limit: Int32 | None = None
    default_partition_type_attribute: str | None = None


class KubernetesStatus(ApiObject, frozen=True):
    """The status with the fields of v1.38 only."""

    pool_count: Int32 | None = None
    pools: tuple[pool_status.PoolStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()


class KubernetesRequest(KubernetesObject, frozen=True):
    """A request with the fields of v1.38 only, to report fields that it does not know."""

    spec: ResourcePoolStatusRequestSpec = always(ResourcePoolStatusRequestSpec)
    status: KubernetesStatus | None = None


class PoolStatus(pool_status.PoolStatus, frozen=True):
    """The devices of one pool, counted."""

    slice_count: Int32 | None = None  # the KEP's


class ResourcePoolStatusRequestStatus(ApiObject, frozen=True):
    """The pool status. Written once."""

    pool_count: Int32 | None = None
    pools: tuple[PoolStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()
    # The KEP's:
    observation_time: Time | None = None
    validation_errors: tuple[str, ...] = ()
    truncated: bool | None = None
    total_matching_pools: Int32 | None = None


class ResourcePoolStatusRequest(KubernetesObject, frozen=True):
    """A request for the status of a driver's pools; a controller writes the status once."""

    spec: ResourcePoolStatusRequestSpec = always(ResourcePoolStatusRequestSpec)
    status: ResourcePoolStatusRequestStatus | None = None


_POOL_FIELDS = pool_status.PoolStatus.__struct_fields__


def request_to_hub(request: ResourcePoolStatusRequest) -> HubRequest:
    spec, status = request.spec, request.status
    return HubRequest(
        request.metadata,
        HubSpec(spec.driver, spec.pool_name, spec.limit, spec.default_partition_type_attribute),
        _status_to_hub(status) if status else None,
    )


def _status_to_hub(status: ResourcePoolStatusRequestStatus) -> HubStatus:
    """What the KEP's fields repeat is taken from the others."""
    return HubStatus(
        pool_count=status.pool_count,
        pools=tuple(
            pool_status.PoolStatus(*(getattr(pool, name) for name in _POOL_FIELDS))
            for pool in status.pools
        ),
        conditions=status.conditions,
        observation_time=status.observation_time,
        validation_errors=status.validation_errors,
    )


def request_from_hub(request: HubRequest) -> ResourcePoolStatusRequest:
    spec, status = request.spec, request.status
    return ResourcePoolStatusRequest(
        request.metadata,
        ResourcePoolStatusRequestSpec(
            spec.driver, spec.pool_name, spec.limit, spec.default_partition_type_attribute
        ),
        _status_from_hub(status) if status else None,
    )


def _status_from_hub(status: HubStatus) -> ResourcePoolStatusRequestStatus:
    is_union = status.observation_time is not None
    pools = tuple(
        PoolStatus(
            **{name: getattr(pool, name) for name in _POOL_FIELDS},
            slice_count=pool.resource_slice_count if is_union else None,
        )
        for pool in status.pools
    )
    shown = ResourcePoolStatusRequestStatus(status.pool_count, pools, status.conditions)
    if not is_union:
        return shown
    return replace(
        shown,
        observation_time=status.observation_time,
        validation_errors=status.shown_errors,
        truncated=status.is_truncated,
        total_matching_pools=status.pool_count,
    )


def restore_unseen(sent: HubRequest, stored: HubRequest) -> HubRequest:
    """What a client sent, with the stored fields that it did not see, or does not know.

    A client that reads an object and writes it back must not erase what it could not see.
    """
    spec = replace(sent.spec, ttl_seconds_after_complete=stored.spec.ttl_seconds_after_complete)
    status = sent.status
    if status is not None and stored.status is not None:
        errors = status.validation_errors
        if not errors or errors == stored.status.shown_errors:
            errors = stored.status.validation_errors
        status = replace(
            status,
            observation_time=status.observation_time or stored.status.observation_time,
            validation_errors=errors,
        )
    return replace(sent, spec=spec, status=status)
