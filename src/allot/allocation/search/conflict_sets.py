"""Conflict sets: the choices that have a part in the refusal of a device.

Choices are frames on the stack of the search; a set of them is an integer with one bit per depth.
Updated pick by pick, so that a lookup does not depend on the number of picks.
"""

from __future__ import annotations

from typing import TypeVar

from allot.allocation.constraints import Constraint
from allot.allocation.devices import CounterKey, SetKey
from allot.allocation.errors import AllocationError
from allot.allocation.requests import Alternative
from allot.allocation.search.attempt import AllocationAttempt, Pick


class ConflictSets:
    """The frames that picked each device and consumed each counter, set and constraint value."""

    def __init__(self, attempt: AllocationAttempt) -> None:
        self._attempt = attempt
        self._depths: list[int] = []
        self.by_device: dict[int, int] = {}
        self.by_constraint: dict[Constraint, int] = {}
        self.by_counter: dict[CounterKey, int] = {}
        self.by_set: dict[SetKey, int] = {}

    def add(self, pick: Pick, depth: int) -> None:
        """Record a pick made at this depth of the stack."""
        self._depths.append(depth)
        self._toggle(pick, 1 << depth)

    def remove(self, pick: Pick) -> None:
        """Undo the record of the last pick."""
        self._toggle(pick, 1 << self._depths.pop())

    def _toggle(self, pick: Pick, bit: int) -> None:
        _flip(self.by_device, pick.index, bit)
        for constraint in pick.alternative.constraints:
            _flip(self.by_constraint, constraint, bit)
        if pick.consumes_counters:
            device = self._attempt.devices[pick.index]
            for key, _ in device.counter_keys:
                _flip(self.by_counter, key, bit)
            for set_key, _ in device.group_keys:
                _flip(self.by_set, set_key, bit)

    def of_use(self, index: int) -> int:
        """The frames that picked a device."""
        return self.by_device.get(index, 0)

    def of_refusal(self, alternative: Alternative, index: int, earlier: int) -> int:
        """The frames without whose picks the device might not have been refused.

        `earlier` are all frames below the one that tries it.
        """
        attempt = self._attempt
        if attempt.is_in_use(alternative, index):
            return self.of_use(index)
        device = attempt.devices[index]
        conflict_sets = self.of_use(index)
        if device.counter_uses:
            if device.shareable:
                # An earlier share would have consumed the counters: every frame that took none has a part.
                return earlier
            short = attempt.counters.short(device)
            if short is not None:
                # One counter that is short is enough.
                return conflict_sets | self.by_counter.get(short, 0)
            if not attempt.counters.admit_groups_of(device):
                for key, _ in device.group_keys:
                    conflict_sets |= self.by_set.get(key, 0)
                return conflict_sets
        for constraint in alternative.constraints:
            try:
                value = attempt.rules.attribute(constraint, alternative, index)
            except AllocationError:
                # The check would have raised it: the device was refused before its constraints were checked.
                return conflict_sets
            if value is not None and not constraint.admits(value):
                return conflict_sets | self.by_constraint.get(constraint, 0)
        return conflict_sets


Key = TypeVar("Key")


def _flip(frames: dict[Key, int], key: Key, bit: int) -> None:
    left = frames.get(key, 0) ^ bit
    if left:
        frames[key] = left
    else:
        del frames[key]
