"""The counts of a pool, as in the status of a ResourcePoolStatusRequest."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from allot.allocation.allocated_devices import Ledger
from allot.api.base import replace
from allot.api.messages import shortened
from allot.api.pool_status import PartitionTypeStatus, PoolStatus, ShareableSummaryStatus
from allot.client.steps import Steps, finish
from allot.controllers.pool_status.consistency import Contradiction, finding_contradictions
from allot.controllers.pool_status.device_availability import DeviceAvailability, PoolAvailability
from allot.controllers.pool_status.partitions import SummaryError, summing_up_partitions
from allot.controllers.pool_status.shares import summing_up_shares
from allot.features import DEFAULTS, FeatureGates
from allot.rules import (
    ALL_SUMMARY_ERRORS,
    AVAILABLE_IS_ALLOCATABLE,
    COUNT_LISTED_DEVICES_ONCE,
    CROSS_SLICE_VALIDATION,
    EQUAL_COSTS_IN_ANY_COUNTER_SET,
)

MAX_ERROR_BYTES: Final = 256


class PoolSummary(NamedTuple):
    """The status of a pool, and its validation errors one by one."""

    status: PoolStatus
    errors: tuple[str, ...] = ()


def pool_status(
    census: PoolAvailability,
    ledger: Ledger,
    default_attribute: str | None = None,
    gates: FeatureGates = DEFAULTS,
) -> PoolStatus:
    """The status of a pool; without counts if the pool is incomplete."""
    return finish(counting_pool(census, ledger, default_attribute, gates)).status


def counting_pool(
    census: PoolAvailability,
    ledger: Ledger,
    default_attribute: str | None = None,
    gates: FeatureGates = DEFAULTS,
) -> Steps[PoolSummary]:
    """`pool_status` in steps."""
    driver, name = census.id
    status = PoolStatus(
        driver=driver,
        pool_name=name,
        node_name=census.node_name,
        generation=census.generation,
    )
    if census.is_incomplete:
        error = (
            f"PoolIncomplete: pool {census.id} is incomplete: observed"
            f" {len(census.slices)}/{census.announced} slices at generation {census.generation}"
        )
        return PoolSummary(replace(status, validation_error=joined((error,))), (error,))
    contradictions: list[Contradiction] = []
    if CROSS_SLICE_VALIDATION in gates:
        contradictions = yield from finding_contradictions(census)
    blocks_taints = AVAILABLE_IS_ALLOCATABLE in gates
    is_refused = blocks_taints and any(found.is_refused for found in contradictions)
    summary_errors: list[str] = []
    partitions: tuple[PartitionTypeStatus, ...] = ()
    shares: ShareableSummaryStatus | None = None
    try:
        partitions = yield from summing_up_partitions(
            census,
            default_attribute,
            blocks_taints=blocks_taints,
            any_counter_set=EQUAL_COSTS_IN_ANY_COUNTER_SET in gates,
        )
    except SummaryError as error:
        summary_errors.append(str(error))
    try:
        shares = yield from summing_up_shares(
            census,
            ledger,
            listed_only=COUNT_LISTED_DEVICES_ONCE in gates,
            blocks_taints=blocks_taints,
        )
    except SummaryError as error:
        summary_errors.append(str(error))
        if ALL_SUMMARY_ERRORS not in gates:
            partitions = ()
            del summary_errors[1:]
    errors = [*summary_errors, *(found.text for found in contradictions)]
    if is_refused:
        partitions = tuple(replace(entry, allocatable=0) for entry in partitions)
    counts = _counts(census, gates)
    if counts.unpublished:
        errors.append(_unpublished(counts.unpublished))
    refused = counts.available if is_refused else 0
    status = replace(
        status,
        resource_slice_count=len(census.slices),
        total_devices=len(census.devices),
        allocated_devices=counts.allocated,
        available_devices=counts.available - refused,
        unavailable_devices=counts.unavailable + refused,
        validation_error=joined(errors) or None,
        partition_summary=partitions,
        shareable_summary=shares,
    )
    return PoolSummary(status, tuple(errors))


class _Counts(NamedTuple):
    allocated: int
    available: int
    unavailable: int
    unpublished: int = 0


def _counts(census: PoolAvailability, gates: FeatureGates) -> _Counts:
    """Devices by state.

    v1.38 subtracts an allocated device that is tainted twice, and counts allocated devices that are no longer
    published.
    """
    states = Counter(counted.state for counted in census.devices)
    if COUNT_LISTED_DEVICES_ONCE in gates:
        return _Counts(
            states[DeviceAvailability.ALLOCATED],
            states[DeviceAvailability.AVAILABLE],
            states[DeviceAvailability.UNAVAILABLE],
            census.unpublished,
        )
    allocated = len(census.taken)
    tainted = sum(counted.is_tainted for counted in census.devices)
    return _Counts(allocated, max(0, len(census.devices) - allocated - tainted), tainted)


def _unpublished(count: int) -> str:
    what = "device is" if count == 1 else "devices are"
    return f"{count} allocated {what} no longer published"


def joined(errors: tuple[str, ...] | list[str], limit: int = MAX_ERROR_BYTES) -> str:
    """As many whole errors as fit, and the number of the others."""
    text = "; ".join(errors)
    if len(text.encode()) <= limit:
        return text
    for kept in range(len(errors) - 1, 0, -1):
        text = "; ".join((*errors[:kept], f"and {len(errors) - kept} more"))
        if len(text.encode()) <= limit:
            return text
    return shortened(errors[0], limit)
