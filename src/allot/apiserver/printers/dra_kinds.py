"""Rows of the kinds of resource.k8s.io."""

from __future__ import annotations

from typing import Any, Final

from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceTaintRule
from allot.api.pool_status import ResourcePoolStatusRequest, ResourcePoolStatusRequestStatus
from allot.api.slices import ResourceSlice
from allot.apiserver.printers.column import AGE, NAME, NONE, Age, Cell, Column

COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "ResourceClaim": (NAME, Column("State"), AGE),
    "ResourceClaimTemplate": (NAME, AGE),
    "DeviceClass": (NAME, AGE),
    "ResourceSlice": (NAME, Column("Node"), Column("Driver"), Column("Pool"), AGE),
    "DeviceTaintRule": (
        NAME,
        Column("Key"),
        Column("Value"),
        Column("Effect"),
        Column("TimeAdded"),
        AGE,
    ),
    "ResourcePoolStatusRequest": (
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
}


def dra_cells(hub_object: Any, age: Age) -> list[Cell]:
    """One row. `age` turns a time into the text people read."""
    name = hub_object.metadata.name
    created = age(hub_object.metadata.creation_timestamp)
    match hub_object:
        case ResourceClaim():
            return [name, claim_state(hub_object), created]
        case ResourceSlice(spec=spec):
            return [name, spec.node_name or "", spec.driver, spec.pool.name, created]
        case DeviceTaintRule(spec=spec):
            taint = spec.taint
            return [name, taint.key, taint.value, taint.effect, age(taint.time_added), created]
        case ResourcePoolStatusRequest():
            return [name, hub_object.spec.driver, *_pool_status_cells(hub_object.status, age)]
    return [name, created]


def claim_state(claim: ResourceClaim) -> str:
    states = []
    deleting = claim.metadata.deletion_timestamp is not None
    if deleting:
        states.append("deleted")
    if claim.status.allocation is not None:
        states.append("allocated")
        if claim.status.reserved_for:
            states.append("reserved")
    elif not deleting:
        states.append("pending")
    return ",".join(states)


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
