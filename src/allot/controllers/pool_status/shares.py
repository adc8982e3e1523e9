"""Devices that several claims can share, and the rest of their capacity (KEP-5075)."""

from __future__ import annotations

from collections.abc import Mapping

from allot.allocation.allocated_devices import Ledger
from allot.api.identities import DeviceId
from allot.api.pool_status import ShareableCapacityStatus, ShareableSummaryStatus
from allot.api.quantity import Format, Quantity
from allot.api.slices import Device
from allot.client.steps import Steps
from allot.controllers.pool_status.device_availability import (
    DEVICES_AT_ONCE,
    CountedDevice,
    DeviceAvailability,
    PoolAvailability,
)
from allot.controllers.pool_status.partitions import MAX_SUMMARIES, SummaryError


def summing_up_shares(
    census: PoolAvailability,
    ledger: Ledger,
    *,
    listed_only: bool = True,
    blocks_taints: bool = True,
) -> Steps[ShareableSummaryStatus | None]:
    """None if no device can be shared, in steps. Raises `SummaryError` beyond `MAX_SUMMARIES` capacities.

    With `listed_only` published devices are counted one by one; a device that is allocated without a share has no
    capacity left. Otherwise all shares of the pool are summed up, including those of devices that are no longer
    published. With `blocks_taints` the capacity of a tainted device is not available.
    """
    shareable = [counted for counted in census.devices if counted.device.allow_multiple_allocations]
    if not shareable:
        return None
    sums = _Sums(listed_only=listed_only)
    for counted in shareable:
        blocked = blocks_taints and counted.is_tainted
        consumed = _consumption(counted, ledger) if listed_only else {}
        sums.add(counted.device, consumed, is_blocked=blocked)
        if sums.is_time_to_pause:
            yield
    if len(sums.total) > MAX_SUMMARIES:
        raise SummaryError(
            f"ShareableSummaryOverCap: pool {census.id} has {len(sums.total)} shareable capacity keys,"
            f" exceeding the maximum of {MAX_SUMMARIES}"
        )
    if not listed_only:
        for name in census.taken:
            sums.consume(ledger.consumed(DeviceId(*census.id, name), ()))
            if sums.is_time_to_pause:
                yield
    in_use = sum(counted.device.name in census.taken for counted in shareable)
    blocked_free = sum(
        blocks_taints and counted.state is DeviceAvailability.UNAVAILABLE for counted in shareable
    )
    return ShareableSummaryStatus(
        fully_available_devices=len(shareable) - in_use - blocked_free,
        partially_available_devices=in_use,
        capacity=tuple(sums.capacity(name) for name in sorted(sums.total)),
    )


def _consumption(counted: CountedDevice, ledger: Ledger) -> Mapping[str, int]:
    """Consumed capacity by name, in billionths."""
    id_ = counted.id
    if ledger.is_dedicated(id_):
        return {name: capacity.value.nanos for name, capacity in counted.device.capacity.items()}
    return ledger.consumed(id_, counted.device.capacity.items())


class _Sums:
    """The capacities of all devices: total, consumed and available."""

    def __init__(self, *, listed_only: bool) -> None:
        self._listed_only = listed_only
        self.total: dict[str, Quantity] = {}
        self._consumed: dict[str, int] = {}
        self._available: dict[str, int] = {}
        self._summed = 0

    @property
    def is_time_to_pause(self) -> bool:
        if self._summed < DEVICES_AT_ONCE:
            return False
        self._summed = 0
        return True

    def add(self, device: Device, consumed: Mapping[str, int], *, is_blocked: bool) -> None:
        for name, capacity in device.capacity.items():
            value = capacity.value
            self.total[name] = self.total[name] + value if name in self.total else value
            left = 0 if is_blocked else max(0, value.nanos - consumed.get(name, 0))
            self._available[name] = self._available.get(name, 0) + left
        self.consume(consumed)
        self._summed += len(device.capacity)

    def consume(self, consumed: Mapping[str, int]) -> None:
        for name, amount in consumed.items():
            self._consumed[name] = self._consumed.get(name, 0) + amount
        self._summed += 1 + len(consumed)

    def capacity(self, name: str) -> ShareableCapacityStatus:
        total, consumed = self.total[name], self._consumed.get(name, 0)
        available = self._available[name] if self._listed_only else max(0, total.nanos - consumed)
        return ShareableCapacityStatus(
            name=name,
            total=total,
            consumed=_quantity(consumed, total.format),
            available=_quantity(available, total.format),
        )


def _quantity(nanos: int, format_: Format) -> Quantity:
    whole, rest = divmod(nanos, 10**9)
    return Quantity.parse(f"{nanos}n") if rest else Quantity.of(whole, format_)
