"""Splits a pool into slices within the API's limits, with stable names."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from allot.api.base import replace
from allot.api.slices import ResourcePool, ResourceSliceSpec
from allot.validation.resource_slice import MAX_COUNTER_SETS, device_limit

_LONGEST_NAME: Final = 253


def cut_into_slices(pool: ResourceSliceSpec) -> tuple[ResourceSliceSpec, ...]:
    """Counters first, then devices in their order. An empty pool is one empty slice.

    If one device needs the lower limit of devices per slice, all slices use it, so that adding such a device
    moves other devices at most once.
    """
    counters, devices = pool.shared_counters or (), pool.devices or ()
    limit = device_limit(devices)
    parts = [
        replace(
            pool,
            devices=None,
            partition_type_attribute=None,
            shared_counters=counters[at : at + MAX_COUNTER_SETS],
        )
        for at in range(0, len(counters), MAX_COUNTER_SETS)
    ]
    parts += [
        replace(pool, shared_counters=None, devices=devices[at : at + limit])
        for at in range(0, len(devices), limit)
    ]
    if not parts:
        parts = [replace(pool, shared_counters=None, devices=None)]
    return numbered(parts)


def numbered(parts: Sequence[ResourceSliceSpec]) -> tuple[ResourceSliceSpec, ...]:
    """The slices of a pool, each with their number."""
    count = len(parts)
    return tuple(replace(part, pool=ResourcePool(part.pool.name, 0, count)) for part in parts)


def slice_name(driver: str, pool: str, index: int) -> str:
    """A stable name for one part of a pool, so that publishing is idempotent.

    The index comes first: the allocator sorts slices by name, and their order is the driver's preference.
    """
    digest = hashlib.blake2s(f"{driver}/{pool}".encode(), digest_size=4).hexdigest()
    middle = f"{driver}-{pool}".replace("/", "-")
    room = _LONGEST_NAME - len(f"{index:05x}--{digest}")
    return f"{index:05x}-{middle[:room].rstrip('-.')}-{digest}"
