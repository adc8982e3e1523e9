"""The allocation attempt: devices picked so far, and what they consume together.

    check ──fits──▶ place ──▶ deeper …
      │                ▲         │
      └─ refused       └─ undo ◀─┘  (last placed, first undone)

`examine` applies the rules in Kubernetes' order. The order decides whether an expression is evaluated
at all, and so whether its error surfaces. The rules are written down only here: `explain.refusals` looks
up the values behind the rule that failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from allot.allocation.attributes import AttributeSet
from allot.allocation.capacity import Consumption
from allot.allocation.counters import Counters, Groups
from allot.allocation.errors import ConstraintError
from allot.allocation.requests import Alternative
from allot.allocation.search.candidates import CandidateRules
from allot.api.lazy import lazy

_NOT_SHARED: Final[Consumption] = {}
_FREE: Final = 1
TAKEN: Final = 2
_LOOKED_UP_AT_ONCE: Final = 32
"""How many devices are looked up in the ledger at a time: the next ones are usually needed, too."""


class FailedRule(Enum):
    """The rule that keeps an alternative from taking a device."""

    IN_USE = "in use"
    NOT_SELECTED = "not selected"
    AMOUNT_NOT_ALLOWED = "amount not allowed"
    CAPACITY = "capacity"
    NODE_OPERATIONS = "node operations"
    COUNTERS_DISABLED = "counters disabled"
    COMPATIBILITY_GROUPS = "compatibility groups"
    COUNTERS = "counters"
    TAINT = "taint"
    CONSTRAINT = "constraint"


class Pick:
    """A device, or a share of it, that an alternative takes in this attempt."""

    __slots__ = (
        "alternative",
        "consumed",
        "consumes_counters",
        "groups_before",
        "index",
        "shared",
        "values",
    )

    def __init__(
        self,
        alternative: Alternative,
        index: int,
        shared: bool,
        consumed: Consumption,
        consumes_counters: bool,
        values: Sequence[AttributeSet],
    ) -> None:
        self.alternative = alternative
        self.index = index
        self.shared = shared
        self.consumed = consumed
        self.consumes_counters = consumes_counters
        self.values = values
        """The device's value for each constraint of the alternative."""
        self.groups_before: list[Groups] = []


class AllocationAttempt:
    """The picks made so far. Picks are undone in reverse order."""

    def __init__(self, rules: CandidateRules, claims: int) -> None:
        self.rules = rules
        self.devices = rules.devices
        self.picks: list[Pick] = []
        self.results_by_claim = [0] * claims
        self.dedicated = bytearray(len(rules.devices))  # by device, once looked up: _FREE or TAKEN
        self._picked: dict[int, list[int]] = {}  # by device: claims that picked it whole
        self.shares: dict[int, int] = {}  # by device: shares of this attempt
        self.consumed: dict[int, dict[str, int]] = {}

    @lazy
    def counters(self) -> Counters:
        """What the picks leave of shared counters."""
        return Counters(self.rules)

    # --- checking, in Kubernetes' order ---

    def is_in_use(self, alternative: Alternative, index: int) -> bool:
        """Whether the device is taken: by an allocated claim, or by a pick of this attempt."""
        if alternative.is_admin:
            return alternative.claim.index in self._picked.get(index, ())
        state = self.dedicated[index] or self._looked_up(index)
        return state == TAKEN or index in self._picked

    def _looked_up(self, index: int) -> int:
        """Look the device up in the ledger, along with those that come next."""
        taken, shared = self.rules.ledger.dedicated, self.rules.shares_in_the_way
        some = self.devices[index : index + _LOOKED_UP_AT_ONCE]
        avoided = self.rules.avoided
        if shared or avoided:
            states = [
                TAKEN
                if device.id in taken
                or device.id in avoided
                or (not device.shareable and device.id in shared)
                else _FREE
                for device in some
            ]
        else:
            states = [TAKEN if device.id in taken else _FREE for device in some]
        self.dedicated[index : index + len(states)] = bytes(states)
        return states[0]

    def check(self, alternative: Alternative, index: int) -> Pick | None:
        """The pick if the alternative can take the device now, else None."""
        found = self.examine(alternative, index)
        return found if isinstance(found, Pick) else None

    def check_required(self, alternative: Alternative, index: int) -> Pick | None:
        """The same for a device that mode All requires: an unmet constraint is an error."""
        found = self.examine_required(alternative, index)
        return found if isinstance(found, Pick) else None

    def examine(self, alternative: Alternative, index: int) -> Pick | FailedRule:
        """The pick if the alternative can take the device now, else the first rule that fails."""
        if self.is_in_use(alternative, index):
            return FailedRule.IN_USE
        if not self.rules.is_selectable(alternative, index):
            return FailedRule.NOT_SELECTED
        consumed = _NOT_SHARED
        if self.rules.consumable:
            possible = self.rules.consumption(alternative, index)
            if possible is None:
                return FailedRule.AMOUNT_NOT_ALLOWED
            if not self.has_capacity(index, possible):
                return FailedRule.CAPACITY
            consumed = possible
        return self._examine_device(alternative, index, consumed, must=False)

    def examine_required(self, alternative: Alternative, index: int) -> Pick | FailedRule:
        """The same for a device that mode All requires: an unmet constraint is a `ConstraintError`."""
        if self.is_in_use(alternative, index):
            return FailedRule.IN_USE
        consumed = _NOT_SHARED
        if self.rules.consumable:
            possible = self.rules.consumption(alternative, index)
            assert possible is not None, "checked when the devices were listed"
            consumed = possible
        found = self._examine_device(alternative, index, consumed, must=True)
        if (
            isinstance(found, Pick)
            and self.rules.consumable
            and not self.has_capacity(index, consumed)
        ):
            return FailedRule.CAPACITY
        return found

    def _examine_device(
        self, alternative: Alternative, index: int, consumed: Consumption, *, must: bool
    ) -> Pick | FailedRule:
        rules = self.rules
        device = self.devices[index]
        if not rules.supports_operations(device):
            return FailedRule.NODE_OPERATIONS
        shared = rules.consumable and device.shareable
        consumes = False
        if device.counter_uses:
            if not rules.partitionable:
                return FailedRule.COUNTERS_DISABLED
            # KEP-4815 with KEP-5075: only the first share of a device consumes counters.
            consumes = not (shared and self.has_share(index))
            counters = self.counters
            if consumes and not counters.admit_groups_of(device):
                return FailedRule.COMPATIBILITY_GROUPS
            if consumes and not counters.suffice_for(device):
                return FailedRule.COUNTERS
        if rules.untolerated_taint(alternative, index) is not None:
            return FailedRule.TAINT
        values: list[AttributeSet] = []
        for constraint in alternative.constraints:
            value = rules.attribute(constraint, alternative, index)
            if value is None or not constraint.admits(value):
                if must:
                    raise ConstraintError(alternative.place, device.id)
                return FailedRule.CONSTRAINT
            values.append(value)
        return Pick(alternative, index, shared, consumed, consumes, values)

    def has_share(self, index: int) -> bool:
        return index in self.shares or self.rules.ledger.has_share(self.devices[index].id)

    def has_capacity(self, index: int, wanted: Consumption) -> bool:
        """Whether the device has this much left of every capacity."""
        device = self.devices[index]
        allocated = self.rules.ledger.consumed(device.id, device.capacity)
        attempted = self.consumed.get(index)
        for name, capacity in device.capacity:
            left = capacity.value.nanos - wanted[name].nanos - allocated.get(name, 0)
            if attempted is not None:
                left -= attempted.get(name, 0)
            if left < 0:
                return False
        return True

    def use_of(self, index: int) -> tuple[tuple[int, ...], int, tuple[tuple[str, int], ...]]:
        """How this attempt uses a device: claims that picked it whole, shares, consumed capacity."""
        consumed = self.consumed.get(index)
        return (
            tuple(sorted(self._picked.get(index, ()))),
            self.shares.get(index, 0),
            tuple(sorted(consumed.items())) if consumed else (),
        )

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
        if pick.consumes_counters:
            pick.groups_before = self.counters.consume(self.devices[index])
        for constraint, value in zip(alternative.constraints, pick.values, strict=True):
            constraint.add(value)

    def undo(self) -> None:
        """Undo the last pick."""
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
        if pick.consumes_counters:
            self.counters.release(self.devices[index], pick.groups_before)
        for constraint in alternative.constraints:
            constraint.remove_last()
