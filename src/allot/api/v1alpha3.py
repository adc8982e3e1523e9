"""ResourcePoolStatusRequest as Kubernetes v1.38 serves it, and conversion to and from the hub."""

from __future__ import annotations

from allot.api.base import ApiObject, Int32, always, replace
from allot.api.meta import Condition, ObjectMeta
from allot.api.pool_status import PoolStatus
from allot.api.pool_status import ResourcePoolStatusRequest as HubRequest
from allot.api.pool_status import ResourcePoolStatusRequestSpec as HubSpec
from allot.api.pool_status import ResourcePoolStatusRequestStatus as HubStatus


class ResourcePoolStatusRequestSpec(ApiObject, frozen=True):
    """Which pools to count. Immutable."""

    driver: str = always(str)
    pool_name: str | None = None
    limit: Int32 | None = None
    default_partition_type_attribute: str | None = None


class ResourcePoolStatusRequestStatus(ApiObject, frozen=True):
    """The answer. Written once."""

    pool_count: Int32 | None = None
    pools: tuple[PoolStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()


class ResourcePoolStatusRequest(ApiObject, frozen=True):
    """A question about the pools of a driver, and, once a controller has seen it, the answer."""

    metadata: ObjectMeta = always(ObjectMeta)
    spec: ResourcePoolStatusRequestSpec = always(ResourcePoolStatusRequestSpec)
    status: ResourcePoolStatusRequestStatus | None = None


def request_to_hub(request: ResourcePoolStatusRequest) -> HubRequest:
    spec, status = request.spec, request.status
    return HubRequest(
        request.metadata,
        HubSpec(spec.driver, spec.pool_name, spec.limit, spec.default_partition_type_attribute),
        HubStatus(status.pool_count, status.pools, status.conditions) if status else None,
    )


def request_from_hub(request: HubRequest) -> ResourcePoolStatusRequest:
    spec, status = request.spec, request.status
    return ResourcePoolStatusRequest(
        request.metadata,
        ResourcePoolStatusRequestSpec(
            spec.driver, spec.pool_name, spec.limit, spec.default_partition_type_attribute
        ),
        ResourcePoolStatusRequestStatus(status.pool_count, status.pools, status.conditions)
        if status
        else None,
    )


def restore_unseen(sent: HubRequest, stored: HubRequest) -> HubRequest:
    """What a client sent, with the stored fields that this version does not show.

    A client that reads an object and writes it back must not erase what it could not see.
    """
    spec = replace(sent.spec, ttl_seconds_after_complete=stored.spec.ttl_seconds_after_complete)
    status = sent.status
    if status is not None and stored.status is not None:
        status = replace(
            status,
            observation_time=stored.status.observation_time,
            validation_errors=stored.status.validation_errors,
        )
    return replace(sent, spec=spec, status=status)
