"""The ledger: the allocated state of all devices (`AllocatedState` in Kubernetes), updated claim by claim.

Adding or removing an allocation takes time in proportion to that allocation, not to their number.
Admin access takes no device and is not recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from allot.allocation.devices import common_groups
from allot.allocation.pools import CounterBudget, Pool, PoolId
from allot.allocation.search.work_meter import WorkMeter
from allot.api.claims import AllocationResult, DeviceRequestAllocationResult
from allot.api.identities import DeviceId
from allot.api.slices import DeviceCapacity, unrequested_amount
from allot.features import CONSUMABLE_CAPACITY, FeatureGates
from allot.rules import CHECK_CONSUMED_CAPACITY

NOTHING: Mapping[Any, int] = {}


def shown_holder(name: str) -> str:
    """The name of a holder without the suffix after `#`."""
    return name.partition("#")[0]


class Available(NamedTuple):
    """What a pool's counters have left, and the compatibility groups of its counter sets."""

    counters: CounterBudget
    groups: Mapping[str, frozenset[str]]
    is_overcommitted: bool
    """Whether some counter is negative, which blocks all devices that use counters."""


class _Share(NamedTuple):
    device: DeviceId
    consumed: tuple[tuple[str, int], ...]
    stated: frozenset[str]
    """Consumed amounts by capacity, where the claim's status has them."""


class _Entry(NamedTuple):
    dedicated: tuple[DeviceId, ...]
    shares: tuple[_Share, ...]


class Ledger:
    """Which claim holds which devices and shares. Claims are identified by a string of the caller's choice.

    Messages show it up to a `#`; the rest may distinguish claims that have the same name one after the other.
    """

    def __init__(self, gates: FeatureGates) -> None:
        self.gates = gates
        self._entries: dict[str, _Entry] = {}
        self._dedicated: dict[DeviceId, dict[str, None]] = {}
        self._shares: dict[DeviceId, dict[str, int]] = {}
        self._consumed: dict[DeviceId, dict[str, int]] = {}
        self._stated: dict[DeviceId, dict[frozenset[str], int]] = {}
        self._estimates = CHECK_CONSUMED_CAPACITY in gates
        self._taken_by_pool: dict[PoolId, dict[str, int]] = {}
        self._available: dict[PoolId, tuple[Pool, Available]] = {}
        self._held_as: dict[DeviceId, Hashable] = {}
        """How devices are held, until that changes. Of those that have shares."""

    # --- changes ---

    def add(self, holder: str, allocation: AllocationResult) -> None:
        """Record the allocation of a claim. A previous one of the same claim is released first."""
        if holder in self._entries:
            self.remove(holder)
        self._enter(holder, self._entry(allocation.devices.results))

    def _enter(self, holder: str, entry: _Entry) -> None:
        self._entries[holder] = entry
        for device in entry.dedicated:
            self._dedicated.setdefault(device, {})[holder] = None
            self._take(device)
        for device, consumed, stated in entry.shares:
            held = self._shares.setdefault(device, {})
            held[holder] = held.get(holder, 0) + 1
            shares = self._stated.setdefault(device, {})
            shares[stated] = shares.get(stated, 0) + 1
            total = self._consumed.setdefault(device, {})
            for name, amount in consumed:
                total[name] = total.get(name, 0) + amount
            self._take(device)

    def remove(self, holder: str) -> None:
        """Release the devices of a claim, if it holds any."""
        entry = self._entries.pop(holder, None)
        if entry is None:
            return
        for device in entry.dedicated:
            self._dedicated.get(device, {}).pop(holder, None)
            if not self._dedicated.get(device, True):
                del self._dedicated[device]
            self._give_back(device)
        for share in entry.shares:
            self._remove_share(holder, share)
            self._give_back(share.device)

    def without(self, holder: str, meter: WorkMeter | None = None) -> Ledger:
        """A copy without one claim. Takes time in proportion to all claims."""
        meter = meter or WorkMeter()
        other = Ledger(self.gates)
        for name, entry in self._entries.items():
            meter.spend(2 + 2 * (len(entry.dedicated) + len(entry.shares)))
            if name != holder:
                other._enter(name, entry)
        return other

    def _entry(self, results: Iterable[DeviceRequestAllocationResult]) -> _Entry:
        dedicated: dict[DeviceId, None] = {}
        shares: list[_Share] = []
        for result in results:
            if result.admin_access:
                continue
            device = result.device_id
            if result.share_id is not None and CONSUMABLE_CAPACITY in self.gates:
                amounts = {
                    name: amount.nanos
                    for name, amount in result.consumed_capacity.items()
                    if amount.nanos >= 0 or not self._estimates
                }
                shares.append(_Share(device, tuple(sorted(amounts.items())), frozenset(amounts)))
            else:
                dedicated[device] = None
        return _Entry(tuple(dedicated), tuple(shares))

    def _remove_share(self, holder: str, share: _Share) -> None:
        device, consumed, stated = share
        held = self._shares[device]
        held[holder] -= 1
        if not held[holder]:
            del held[holder]
        if not held:
            # With the last share, all consumption is gone.
            del self._shares[device]
            del self._consumed[device]
            del self._stated[device]
            return
        shares = self._stated[device]
        shares[stated] -= 1
        if not shares[stated]:
            del shares[stated]
        total = self._consumed[device]
        for name, amount in consumed:
            total[name] -= amount

    def _take(self, device: DeviceId) -> None:
        pool = PoolId(device.driver, device.pool)
        taken = self._taken_by_pool.setdefault(pool, {})
        taken[device.device] = taken.get(device.device, 0) + 1
        self._available.pop(pool, None)
        self._held_as.pop(device, None)

    def _give_back(self, device: DeviceId) -> None:
        pool = PoolId(device.driver, device.pool)
        taken = self._taken_by_pool[pool]
        taken[device.device] -= 1
        if not taken[device.device]:
            del taken[device.device]
        if not taken:
            del self._taken_by_pool[pool]
        self._available.pop(pool, None)
        self._held_as.pop(device, None)

    # --- queries ---

    def __contains__(self, holder: str) -> bool:
        return holder in self._entries

    def is_dedicated(self, device: DeviceId) -> bool:
        """Whether a claim holds the whole device."""
        return device in self._dedicated

    @property
    def dedicated(self) -> Collection[DeviceId]:
        """Devices that a claim holds exclusively."""
        return self._dedicated.keys()

    @property
    def shared(self) -> Collection[DeviceId]:
        """Devices of which claims hold shares."""
        return self._shares.keys()

    def has_share(self, device: DeviceId) -> bool:
        return device in self._shares

    def taken(self, pool: PoolId) -> Collection[str]:
        """The devices of a pool that claims hold, whole or in shares. Not all of them need be published."""
        return self._taken_by_pool.get(pool, NOTHING).keys()

    def consumed(
        self, device: DeviceId, capacities: Iterable[tuple[str, DeviceCapacity]]
    ) -> Mapping[str, int]:
        """What all shares of a device consume together, in billionths.

        `capacities` are the published ones. Where the status of a share does not tell its consumption
        of one of them, it counts as a request that does not mention the capacity.
        """
        total = self._consumed.get(device, NOTHING)
        if not self._estimates or device not in self._stated:
            return total
        known = self._stated[device]
        missing: dict[str, int] = {}
        for name, capacity in capacities:
            unstated = 0
            for names, shares in known.items():
                if name not in names:
                    unstated += shares
            if unstated:
                missing[name] = unstated * max(0, unrequested_amount(capacity).nanos)
        if not missing:
            return total
        return {name: total.get(name, 0) + missing.get(name, 0) for name in {*total, *missing}}

    def held_as(self, device: DeviceId) -> Hashable:
        """How a device is held, without its holders: equal if it makes no difference for the next claim."""
        known = self._held_as.get(device)
        if known is not None:
            return known
        consumed = self._consumed.get(device, NOTHING)
        stated = self._stated.get(device, NOTHING) if self._estimates else NOTHING
        if not consumed and not stated:
            return device in self._dedicated
        self._held_as[device] = held = (
            device in self._dedicated,
            tuple(sorted(consumed.items())),
            tuple(sorted((tuple(sorted(names)), shares) for names, shares in stated.items())),
        )
        return held

    def holders(self, device: DeviceId) -> tuple[str, ...]:
        """The claims that hold the device or a share of it."""
        return (*self._dedicated.get(device, ()), *self._shares.get(device, ()))

    def snapshot(self) -> tuple[object, ...]:
        """The whole content, in a form that can be compared."""
        return (
            dict(self._entries),
            {device: set(holders) for device, holders in self._dedicated.items()},
            {device: dict(shares) for device, shares in self._shares.items()},
            {
                device: {name: amount for name, amount in consumed.items() if amount}
                for device, consumed in self._consumed.items()
            },
            {pool: dict(taken) for pool, taken in self._taken_by_pool.items()},
        )

    def available(self, pool: Pool, meter: WorkMeter | None = None) -> Available:
        """What is left of a pool's counters; negative if they are overcommitted.

        Cached until a device of the pool is allocated or released, or the pool itself changes.
        """
        known = self._available.get(pool.id)
        if known is not None and known[0] is pool:
            return known[1]
        meter = meter or WorkMeter()
        counters: CounterBudget = {}
        for name, amounts in pool.counters.items():
            meter.spend(1 + len(amounts) // 16)
            counters[name] = dict(amounts)
        groups: dict[str, frozenset[str]] = {}
        for name in self._taken_by_pool.get(pool.id, ()):
            meter.spend(1)
            device = pool.counted.get(name)
            if device is None:
                continue
            for use in device.counter_uses:
                meter.spend(1 + len(use.amounts) // 4)
                left = counters[use.counter_set]
                for counter, amount in use.amounts.items():
                    left[counter] -= amount
                placed = groups.get(use.counter_set)
                groups[use.counter_set] = common_groups(placed, use.groups)
        overcommitted = False
        for left in counters.values():
            meter.spend(1 + len(left) // 16)
            overcommitted = overcommitted or (bool(left) and min(left.values()) < 0)
        available = Available(counters, groups, overcommitted)
        self._available[pool.id] = (pool, available)
        return available
