"""The attempt: devices picked so far, and what they use up together.

    check ──fits──▶ place ──▶ deeper …
      │                ▲         │
      └─ refused       └─ undo ◀─┘  (last placed, first undone)

A check goes through the rules in Kubernetes' order, because the order decides whether an expression
is evaluated at all, and with it whether its error surfaces.
"""

from __future__ import annotations

from typing import Final

from allot.allocation.candidates import CandidateRules
from allot.allocation.capacity import Consumption
from allot.allocation.devices import CounterKey, PoolDevice
from allot.allocation.errors import AllocationError
from allot.allocation.ledger import NOTHING, Available
from allot.allocation.pools import CounterBudget, PoolId
from allot.allocation.requests import Alternative

NOT_SHARED: Final[Consumption] = {}
NO_COUNTERS: Final[CounterBudget] = {}
_FREE: Final = 1
_TAKEN: Final = 2


class Pick:
    """A device, or a share of it, that an alternative takes in this attempt."""

    __slots__ = ("alternative", "consumed", "groups_before", "index", "pays_counters", "shared")

    def __init__(
        self,
        alternative: Alternative,
        index: int,
        shared: bool,
        consumed: Consumption,
        pays_counters: bool,
    ) -> None:
        self.alternative = alternative
        self.index = index
        self.shared = shared
        self.consumed = consumed
        self.pays_counters = pays_counters
        self.groups_before: list[tuple[str, frozenset[str] | None]] = []


class Attempt:
    """What is picked at the moment."""

    def __init__(self, rules: CandidateRules, claims: int) -> None:
        self.rules = rules
        self.devices = rules.devices
        self.picks: list[Pick] = []
        self.results_by_claim = [0] * claims
        self._dedicated = bytearray(len(rules.devices))  # by device, once asked: _FREE or _TAKEN
        self._picked: dict[int, list[int]] = {}  # by device: claims that picked it whole
        self.shares: dict[int, int] = {}  # by device: shares of this attempt
        self.consumed: dict[int, dict[str, int]] = {}
        self.counters: dict[PoolId, CounterBudget] = {}
        self.groups: dict[PoolId, dict[str, frozenset[str]]] = {}

    # --- checking, in Kubernetes' order ---

    def is_in_use(self, alternative: Alternative, index: int) -> bool:
        """Whether the device is out of the question, before anything about it is looked at."""
        if alternative.is_admin:
            return alternative.claim.index in self._picked.get(index, ())
        if index in self._picked:
            return True
        state = self._dedicated[index]
        if not state:
            taken = self.rules.ledger.is_dedicated(self.devices[index].id)
            state = self._dedicated[index] = _TAKEN if taken else _FREE
        return state == _TAKEN

    def check(self, alternative: Alternative, index: int) -> Pick | None:
        """How the alternative could take the device now; None if it cannot."""
        if self.is_in_use(alternative, index):
            return None
        if not self.rules.is_selectable(alternative, index):
            return None
        consumed = NOT_SHARED
        if self.rules.consumable:
            possible = self.rules.consumption(alternative, index)
            if possible is None or not self.has_capacity(index, possible):
                return None
            consumed = possible
        return self._checked_further(alternative, index, consumed, must=False)

    def check_required(self, alternative: Alternative, index: int) -> Pick | None:
        """The same for a device that mode All insists on: a broken constraint is an error."""
        if self.is_in_use(alternative, index):
            return None
        consumed = NOT_SHARED
        if self.rules.consumable:
            possible = self.rules.consumption(alternative, index)
            assert possible is not None, "found out when the devices were listed"
            consumed = possible
        pick = self._checked_further(alternative, index, consumed, must=True)
        if pick is None or not self.rules.consumable or self.has_capacity(index, consumed):
            return pick
        return None

    def _checked_further(
        self, alternative: Alternative, index: int, consumed: Consumption, *, must: bool
    ) -> Pick | None:
        rules = self.rules
        device = self.devices[index]
        if not rules.supports_operations(device):
            return None
        shared = rules.consumable and device.shareable
        pays = False
        if device.counter_uses:
            if not rules.partitionable:
                return None
            # KEP-4815 with KEP-5075: only the first share of a device pays for it.
            pays = not (shared and self.has_share(index))
            if pays and not (self.admits_groups(device) and self.has_counters(device)):
                return None
        if rules.untolerated_taint(alternative, index) is not None:
            return None
        for constraint in alternative.constraints:
            value = rules.attribute(constraint, alternative, index)
            if value is None or not constraint.admits(value):
                if must:
                    raise AllocationError(
                        f"{alternative.place}: cannot add device {device.id}"
                        " because a claim constraint would not be satisfied"
                    )
                return None
        return Pick(alternative, index, shared, consumed, pays)

    def has_share(self, index: int) -> bool:
        return index in self.shares or self.rules.ledger.has_share(self.devices[index].id)

    def has_capacity(self, index: int, wanted: Consumption) -> bool:
        """Whether the device has that much left of every capacity."""
        device = self.devices[index]
        allocated = self.rules.ledger.consumed(device.id)
        attempted = self.consumed.get(index)
        for name, capacity in device.capacity:
            left = capacity.value.nanos - wanted[name].nanos - allocated.get(name, 0)
            if attempted is not None:
                left -= attempted.get(name, 0)
            if left < 0:
                return False
        return True

    def use_of(self, index: int) -> tuple[tuple[int, ...], int, tuple[tuple[str, int], ...]]:
        """How this attempt uses a device: the claims that have it, its shares, what those consume."""
        consumed = self.consumed.get(index)
        return (
            tuple(sorted(self._picked.get(index, ()))),
            self.shares.get(index, 0),
            tuple(sorted(consumed.items())) if consumed else (),
        )

    def available(self, device: PoolDevice) -> Available:
        pool = self.rules.view.pool_by_id[PoolId(device.id.driver, device.id.pool)]
        return self.rules.ledger.available(pool, self.rules.meter)

    def has_counters(self, device: PoolDevice) -> bool:
        """Whether all counters of the pool stay within bounds, also those the device leaves alone:
        one that is overcommitted already blocks the whole pool."""
        return self.short_counter(device) is None and not self.available(device).is_overcommitted

    def short_counter(self, device: PoolDevice) -> CounterKey | None:
        """The first of the device's own counters that does not suffice. As what is picked stays within bounds,
        no others can become short."""
        available = self.available(device)
        id_ = PoolId(device.id.driver, device.id.pool)
        used = self.counters.get(id_, NO_COUNTERS)
        for counter_set, amounts in device.counters_wanted.items():
            left = available.counters[counter_set]
            used_here = used.get(counter_set, NOTHING)
            for name, amount in amounts.items():
                if left[name] < used_here.get(name, 0) + amount:
                    return (*id_, counter_set, name)
        return None

    def counter_left(self, key: CounterKey) -> int:
        """What this attempt leaves of a counter."""
        driver, pool, counter_set, name = key
        assert name is not None
        id_ = PoolId(driver, pool)
        available = self.rules.ledger.available(self.rules.view.pool_by_id[id_], self.rules.meter)
        used = self.counters.get(id_, NO_COUNTERS).get(counter_set, NOTHING)
        return available.counters[counter_set][name] - used.get(name, 0)

    def groups_of(self, key: CounterKey) -> frozenset[str] | None:
        """The groups to which this attempt binds a counter set, if it uses it."""
        driver, pool, counter_set, _ = key
        return self.groups.get(PoolId(driver, pool), {}).get(counter_set)

    def admits_groups(self, device: PoolDevice) -> bool:
        """Whether the device goes with all that is placed in its counter sets."""
        allocated = self.available(device).groups
        attempted = self.groups.get(PoolId(device.id.driver, device.id.pool), {})
        for use in device.counter_uses:
            placed = attempted.get(use.counter_set, allocated.get(use.counter_set))
            if placed is None:
                continue
            if (placed or use.groups) and placed.isdisjoint(use.groups):
                return False
        return True

    # --- placing and undoing ---

    def place(self, pick: Pick) -> None:
        alternative, index = pick.alternative, pick.index
        claim = alternative.claim.index
        self.picks.append(pick)
        self.results_by_claim[claim] += 1
        if pick.shared:
            self.shares[index] = self.shares.get(index, 0) + 1
            total = self.consumed.setdefault(index, {})
            for name, amount in pick.consumed.items():
                total[name] = total.get(name, 0) + amount.nanos
        else:
            self._picked.setdefault(index, []).append(claim)
        if pick.pays_counters:
            self._pay(pick, self.devices[index])
        for constraint in alternative.constraints:
            value = self.rules.attribute(constraint, alternative, index)
            assert value is not None, "checked before"
            constraint.add(value)

    def undo(self) -> None:
        """Take back the pick placed last."""
        pick = self.picks.pop()
        alternative, index = pick.alternative, pick.index
        self.results_by_claim[alternative.claim.index] -= 1
        if pick.shared:
            self.shares[index] -= 1
            if self.shares[index]:
                total = self.consumed[index]
                for name, amount in pick.consumed.items():
                    total[name] -= amount.nanos
            else:
                del self.shares[index], self.consumed[index]
        else:
            claims = self._picked[index]
            claims.pop()
            if not claims:
                del self._picked[index]
        if pick.pays_counters:
            self._refund(pick, self.devices[index])
        for constraint in alternative.constraints:
            constraint.remove_last()

    def _pay(self, pick: Pick, device: PoolDevice) -> None:
        pool = PoolId(device.id.driver, device.id.pool)
        allocated = self.available(device).groups
        used = self.counters.setdefault(pool, {})
        groups = self.groups.setdefault(pool, {})
        for use in device.counter_uses:
            amounts = used.setdefault(use.counter_set, {})
            for name, amount in use.amounts.items():
                amounts[name] = amounts.get(name, 0) + amount
            before = groups.get(use.counter_set)
            pick.groups_before.append((use.counter_set, before))
            placed = before if before is not None else allocated.get(use.counter_set)
            groups[use.counter_set] = use.groups if placed is None else placed & use.groups

    def _refund(self, pick: Pick, device: PoolDevice) -> None:
        pool = PoolId(device.id.driver, device.id.pool)
        used, groups = self.counters[pool], self.groups[pool]
        for use in device.counter_uses:
            amounts = used[use.counter_set]
            for name, amount in use.amounts.items():
                amounts[name] -= amount
        for counter_set, before in reversed(pick.groups_before):
            if before is None:
                del groups[counter_set]
            else:
                groups[counter_set] = before
