"""Shared counters of partitionable devices (KEP-4815): what an attempt leaves, and the compatibility groups it sets."""

from __future__ import annotations

from allot.allocation.allocated_devices import Available
from allot.allocation.devices import CounterKey, PoolDevice, PoolId, SetKey, common_groups
from allot.allocation.search.candidates import CandidateRules

Groups = frozenset[str] | None
"""The groups that devices in a counter set have in common; None while no device uses the set."""


class Counters:
    """What is left of each counter. Looked up in the ledger when first needed."""

    def __init__(self, rules: CandidateRules) -> None:
        self._available = _AvailableByPool(rules)
        self.left = _Left(self._available)
        self.groups = _Placed(self._available)
        self.consumers = 0
        """How many picks consume counters."""

    def available(self, pool: PoolId) -> Available:
        """What allocated claims leave of a pool's counters."""
        return self._available[pool]

    def suffice_for(self, device: PoolDevice) -> bool:
        """Whether all counters of the pool stay within bounds, also those the device does not use:
        a counter that is overcommitted already blocks the whole pool."""
        return self.short(device) is None and not self.available(device.pool).is_overcommitted

    def short(self, device: PoolDevice) -> CounterKey | None:
        """The first of the device's own counters that is short.

        Picks stay within bounds, so no other counter can become short.
        """
        left = self.left
        for key, amount in device.counter_keys:
            if left[key] < amount:
                return key
        return None

    def admit_groups_of(self, device: PoolDevice) -> bool:
        """Whether the device is compatible with all that use its counter sets."""
        for key, groups in device.group_keys:
            placed = self.groups[key]
            if placed is not None and (placed or groups) and placed.isdisjoint(groups):
                return False
        return True

    def consume(self, device: PoolDevice) -> list[Groups]:
        """Consume what the device uses; returns the previous groups."""
        self.consumers += 1
        left, groups = self.left, self.groups
        for key, amount in device.counter_keys:
            left[key] -= amount
        before: list[Groups] = []
        for set_key, own in device.group_keys:
            placed = groups[set_key]
            before.append(placed)
            groups[set_key] = common_groups(placed, own)
        return before

    def release(self, device: PoolDevice, before: list[Groups]) -> None:
        """Undo `consume`, in reverse order."""
        self.consumers -= 1
        for key, amount in device.counter_keys:
            self.left[key] += amount
        for (set_key, _), placed in zip(reversed(device.group_keys), reversed(before), strict=True):
            self.groups[set_key] = placed


class _AvailableByPool(dict[PoolId, Available]):
    __slots__ = ("_rules",)

    def __init__(self, rules: CandidateRules) -> None:
        self._rules = rules

    def __missing__(self, pool: PoolId) -> Available:
        rules = self._rules
        available = rules.ledger.available(rules.view.pool_by_id[pool], rules.meter)
        self[pool] = available
        return available


class _Left(dict[CounterKey, int]):
    __slots__ = ("_available",)

    def __init__(self, available: _AvailableByPool) -> None:
        self._available = available

    def __missing__(self, key: CounterKey) -> int:
        driver, pool, counter_set, name = key
        available = self._available[PoolId(driver, pool)]
        amount = self[key] = available.counters[counter_set][name]
        return amount


class _Placed(dict[SetKey, Groups]):
    __slots__ = ("_available",)

    def __init__(self, available: _AvailableByPool) -> None:
        self._available = available

    def __missing__(self, key: SetKey) -> Groups:
        driver, pool, counter_set = key
        groups = self[key] = self._available[PoolId(driver, pool)].groups.get(counter_set)
        return groups
