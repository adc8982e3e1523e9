"""A pool in figures, as a ResourcePoolStatusRequest shows it."""

from __future__ import annotations

from collections import Counter
from typing import Final

from allot.allocation.ledger import Ledger
from allot.api.pool_status import PartitionTypeStatus, PoolStatus, ShareableSummaryStatus
from allot.client.pauses import Steps, finish
from allot.controllers.pool_status.census import DeviceState, PoolCensus
from allot.controllers.pool_status.consistency import finding_contradictions
from allot.controllers.pool_status.partitions import SummaryError, summing_up_partitions
from allot.controllers.pool_status.shares import summing_up_shares

MAX_ERROR_BYTES: Final = 256


def pool_status(
    census: PoolCensus, ledger: Ledger, default_attribute: str | None = None
) -> PoolStatus:
    """The figures; of an incomplete pool only that it is."""
    return finish(counting_pool(census, ledger, default_attribute))


def counting_pool(
    census: PoolCensus, ledger: Ledger, default_attribute: str | None = None
) -> Steps[PoolStatus]:
    """`pool_status` in steps.

    A device that is tainted and allocated counts as allocated, once. What claims still hold of devices that
    are no longer published counts as allocated, too: nobody else should count on it.
    """
    driver, name = census.id
    if census.is_incomplete:
        return PoolStatus(
            driver=driver,
            pool_name=name,
            node_name=census.node_name,
            generation=census.generation,
            validation_error=shortened(
                f"PoolIncomplete: pool {census.id} is incomplete: observed"
                f" {len(census.slices)}/{census.announced} slices"
                f" at generation {census.generation}"
            ),
        )
    problems = yield from finding_contradictions(census)
    partitions: tuple[PartitionTypeStatus, ...] = ()
    shares: ShareableSummaryStatus | None = None
    try:
        partitions = yield from summing_up_partitions(census, default_attribute)
    except SummaryError as error:
        problems.insert(0, str(error))
    try:
        shares = yield from summing_up_shares(census, ledger)
    except SummaryError as error:
        problems.insert(0, str(error))
    states = Counter(counted.state for counted in census.devices)
    total, allocated = len(census.devices), len(census.taken)
    unavailable = states[DeviceState.UNAVAILABLE]
    return PoolStatus(
        driver=driver,
        pool_name=name,
        node_name=census.node_name,
        generation=census.generation,
        resource_slice_count=len(census.slices),
        total_devices=total,
        allocated_devices=allocated,
        available_devices=max(0, total - allocated - unavailable),
        unavailable_devices=unavailable,
        validation_error=shortened("; ".join(problems)) or None,
        partition_summary=partitions,
        shareable_summary=shares,
    )


def shortened(text: str, limit: int = MAX_ERROR_BYTES) -> str:
    """Whole characters, as many as fit."""
    encoded = text.encode()
    if len(encoded) <= limit:
        return text
    return encoded[: limit - 3].decode(errors="ignore") + "..."
