"""Devices that several claims can share, and what is left of their capacity (KEP-5075)."""

from __future__ import annotations

from allot.allocation.ledger import Ledger
from allot.api.identities import DeviceId
from allot.api.pool_status import ShareableCapacityStatus, ShareableSummaryStatus
from allot.api.quantity import Format, Quantity
from allot.client.pauses import Steps
from allot.controllers.pool_status.census import DEVICES_AT_ONCE, PoolCensus
from allot.controllers.pool_status.partitions import MAX_SUMMARIES, SummaryError


def summing_up_shares(census: PoolCensus, ledger: Ledger) -> Steps[ShareableSummaryStatus | None]:
    """None if no device can be shared, in steps. `SummaryError` if there is too much to tell."""
    shareable = [
        counted.device for counted in census.devices if counted.device.allow_multiple_allocations
    ]
    if not shareable:
        return None
    total: dict[str, Quantity] = {}
    summed = 0
    for device in shareable:
        for name, capacity in device.capacity.items():
            total[name] = total[name] + capacity.value if name in total else capacity.value
        summed += 1 + len(device.capacity)
        if summed >= DEVICES_AT_ONCE:
            summed = 0
            yield
    if len(total) > MAX_SUMMARIES:
        raise SummaryError(
            f"ShareableSummaryOverCap: {len(total)} capacities, at most {MAX_SUMMARIES} can be shown"
        )
    consumed = yield from _summing_up_consumption(census, ledger)
    in_use = sum(device.name in census.taken for device in shareable)
    return ShareableSummaryStatus(
        fully_available_devices=len(shareable) - in_use,
        partially_available_devices=in_use,
        capacity=tuple(
            _capacity(name, total[name], consumed.get(name, 0)) for name in sorted(total)
        ),
    )


def _summing_up_consumption(census: PoolCensus, ledger: Ledger) -> Steps[dict[str, int]]:
    """By capacity, in billionths."""
    amounts: dict[str, int] = {}
    capacity_by_device = {
        counted.device.name: counted.device.capacity for counted in census.devices
    }
    summed = 0
    for device in census.taken:
        published = capacity_by_device.get(device, {}).items()
        consumed = ledger.consumed(DeviceId(*census.id, device), published)
        for name, amount in consumed.items():
            amounts[name] = amounts.get(name, 0) + amount
        summed += 1 + len(consumed)
        if summed >= DEVICES_AT_ONCE:
            summed = 0
            yield
    return amounts


def _capacity(name: str, total: Quantity, consumed: int) -> ShareableCapacityStatus:
    return ShareableCapacityStatus(
        name=name,
        total=total,
        consumed=_quantity(consumed, total.format),
        available=_quantity(max(0, total.nanos - consumed), total.format),
    )


def _quantity(nanos: int, format_: Format) -> Quantity:
    whole, rest = divmod(nanos, 10**9)
    return Quantity.parse(f"{nanos}n") if rest else Quantity.of(whole, format_)
