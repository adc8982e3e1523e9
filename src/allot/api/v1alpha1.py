"""ResourcePoolStatusRequest as KEP-5677 writes it, and conversion to and from the hub.

`truncated` and `totalMatchingPools` correspond to the hub's pool count, and the list of validation errors to the
errors of single pools. A status without an observation time has it in its condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from allot.api.base import ApiObject, Int32, Int64, Time, always, replace
from allot.api.meta import Condition, KubernetesObject
from allot.api.pool_status import CALCULATED, COMPLETE
from allot.api.pool_status import PoolStatus as HubPoolStatus
from allot.api.pool_status import ResourcePoolStatusRequest as HubRequest
from allot.api.pool_status import ResourcePoolStatusRequestSpec as HubSpec
from allot.api.pool_status import ResourcePoolStatusRequestStatus as HubStatus

Hub = TypeVar("Hub", bound=ApiObject)
Mine = TypeVar("Mine", bound=ApiObject)

_PROCESSED: Final = "Processed"
"""How the message of the condition Complete begins in the KEP."""


class PoolStatus(ApiObject, frozen=True):
    """The devices of one pool, counted."""

    driver: str = always(str)
    pool_name: str = always(str)
    node_name: str | None = None
    total_devices: Int32 | None = None
    allocated_devices: Int32 | None = None
    available_devices: Int32 | None = None
    unavailable_devices: Int32 | None = None
    slice_count: Int32 | None = None
    generation: Int64 = always(int)


class ResourcePoolStatusRequestSpec(ApiObject, frozen=True):
    """Which pools to count. Immutable."""

    driver: str = always(str)
    pool_name: str | None = None
    limit: Int32 | None = None
    ttl_seconds_after_complete: Int32 | None = None


class ResourcePoolStatusRequestStatus(ApiObject, frozen=True):
    """The pool status. Written once."""

    observation_time: Time | None = None
    pools: tuple[PoolStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()
    validation_errors: tuple[str, ...] = ()
    truncated: bool = always(bool)
    total_matching_pools: Int32 | None = None


class ResourcePoolStatusRequest(KubernetesObject, frozen=True):
    """A request for the status of a driver's pools; a controller writes the status once."""

    spec: ResourcePoolStatusRequestSpec = always(ResourcePoolStatusRequestSpec)
    status: ResourcePoolStatusRequestStatus | None = None


# What the fields of this version are called in the hub.
_SPEC: Final = {name: name for name in ResourcePoolStatusRequestSpec.__struct_fields__}
_POOL: Final = {name: name for name in PoolStatus.__struct_fields__} | {
    "slice_count": "resource_slice_count"
}


def _to_hub(part: ApiObject, cls: type[Hub], names: Mapping[str, str]) -> Hub:
    return cls(**{hub: getattr(part, mine) for mine, hub in names.items()})


def _from_hub(part: ApiObject, cls: type[Mine], names: Mapping[str, str]) -> Mine:
    return cls(**{mine: getattr(part, hub) for mine, hub in names.items()})


def request_to_hub(request: ResourcePoolStatusRequest) -> HubRequest:
    spec, status = request.spec, request.status
    return HubRequest(
        request.metadata,
        _to_hub(spec, HubSpec, _SPEC),
        None if status is None else _status_to_hub(status),
    )


def _status_to_hub(status: ResourcePoolStatusRequestStatus) -> HubStatus:
    total = status.total_matching_pools
    return HubStatus(
        pool_count=len(status.pools) if total is None else total,
        pools=tuple(_to_hub(pool, HubPoolStatus, _POOL) for pool in status.pools),
        conditions=_reworded(status.conditions, _PROCESSED, CALCULATED),
        observation_time=status.observation_time,
        validation_errors=status.validation_errors,
    )


def request_from_hub(request: HubRequest) -> ResourcePoolStatusRequest:
    spec, status = request.spec, request.status
    return ResourcePoolStatusRequest(
        request.metadata,
        _from_hub(spec, ResourcePoolStatusRequestSpec, _SPEC),
        None if status is None else _status_from_hub(status),
    )


def _status_from_hub(status: HubStatus) -> ResourcePoolStatusRequestStatus:
    return ResourcePoolStatusRequestStatus(
        observation_time=status.observation_time or status.finished_at,
        pools=tuple(_from_hub(pool, PoolStatus, _POOL) for pool in status.pools),
        conditions=_reworded(status.conditions, CALCULATED, _PROCESSED),
        validation_errors=status.shown_errors,
        truncated=status.is_truncated,
        total_matching_pools=status.pool_count,
    )


def _reworded(conditions: tuple[Condition, ...], old: str, new: str) -> tuple[Condition, ...]:
    """The conditions, with the message of Complete in the words of the other version."""
    return tuple(
        replace(condition, message=f"{new} {condition.message.removeprefix(old + ' ')}")
        if condition.type == COMPLETE and condition.message.startswith(old + " ")
        else condition
        for condition in conditions
    )


def restore_unseen(sent: HubRequest, stored: HubRequest) -> HubRequest:
    """What a client sent, with the stored fields that this version does not show.

    A client that reads an object and writes it back must not erase what it could not see.
    """
    spec = replace(
        sent.spec,
        default_partition_type_attribute=stored.spec.default_partition_type_attribute,
    )
    seen = _status_from_hub(stored.status) if stored.status else None
    unchanged = seen is not None and sent.status == _status_to_hub(seen)
    return replace(sent, spec=spec, status=stored.status if unchanged else sent.status)
