"""Residual state: what of the picks the rest of a search depends on.

Subtrees with equal residual state have the same result. Left out is whatever makes no difference: devices that
no later request can take, counters that suffice for all remaining users, constraints of finished claims.
Devices are represented by their equivalence class.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable

from allot.allocation.constraints import Constraint
from allot.allocation.devices import CounterKey
from allot.allocation.requests import Alternative
from allot.allocation.search.attempt import AllocationAttempt
from allot.allocation.search.conflict_sets import ConflictSets
from allot.allocation.search.domains import FutureDomains


class ResidualState:
    """Computes the residual state of frames of one search."""

    def __init__(
        self, attempt: AllocationAttempt, future: FutureDomains, conflict_sets: ConflictSets
    ) -> None:
        self._attempt = attempt
        self._meter = attempt.rules.meter
        self._future = future
        self._conflict_sets = conflict_sets
        self._constraints: dict[int, list[Constraint]] = {}
        self._first_shares: dict[int, bool] = {}
        self._groups: bool | None = None
        self._demand_from: dict[int, dict[CounterKey, int]] = {}
        self._demand_in: dict[Alternative, dict[CounterKey, tuple[list[int], list[int]]]] = {}

    def of(self, at: int, alternative: Alternative | None, position: int) -> tuple[Hashable, int]:
        """The residual state from request number `at` on, and the frames that shape it.

        With an alternative, its devices from `position` on are still to be tried.
        """
        self._meter.spend(8 + 2 * len(self._attempt.picks))
        uses, relevant = self._uses(at, alternative, position)
        constraints = self._relevant_constraints(at)
        for constraint in constraints:
            relevant |= self._conflict_sets.by_constraint.get(constraint, 0)
        state: Hashable = (tuple(uses), tuple(each.state() for each in constraints))
        if self._conflict_sets.by_counter:
            counters, users = self._counters(at, alternative, position)
            state, relevant = (state, counters), relevant | users
        if self._conflict_sets.by_set and self._has_groups():
            groups = self._attempt.counters.groups
            state = (state, frozenset((key, groups[key]) for key in self._conflict_sets.by_set))
            for frames in self._conflict_sets.by_set.values():
                relevant |= frames
        return state, relevant

    def _uses(
        self, at: int, alternative: Alternative | None, position: int
    ) -> tuple[list[tuple[int, bool, Hashable]], int]:
        """How devices in remaining domains are used, by equivalence class."""
        attempt, future = self._attempt, self._future
        here = future.classes_from[at]
        uses: list[tuple[int, bool, Hashable]] = []
        relevant = 0
        if alternative is None:
            for index, frames in self._conflict_sets.by_device.items():
                class_ = here.get(index)
                if class_ is not None:
                    relevant |= frames
                    uses.append((class_, False, attempt.use_of(index)))
        else:
            later = future.classes_from[at + 1]
            domain = future.domains[alternative]
            indices = domain.indices
            boundary = indices[position] if position < len(indices) else len(attempt.devices)
            for index, frames in self._conflict_sets.by_device.items():
                is_ahead = index >= boundary and index in domain.traits
                class_ = here.get(index) if is_ahead else later.get(index)
                if class_ is not None:
                    relevant |= frames
                    uses.append((class_, is_ahead, attempt.use_of(index)))
        uses.sort()
        return uses, relevant

    def _relevant_constraints(self, at: int) -> list[Constraint]:
        """The constraints of the claim that cover a request from this one on."""
        known = self._constraints.get(at)
        if known is None:
            requests = self._future.requests
            claim = requests[at].alternatives[0].claim
            ahead = {
                constraint
                for request in requests[at:]
                if request.alternatives[0].claim is claim
                for alternative in request.alternatives
                for constraint in alternative.constraints
            }
            known = [constraint for constraint in claim.constraints if constraint in ahead]
            self._constraints[at] = known
        return known

    def depends_on_first_shares(self, at: int) -> bool:
        """Whether a missing pick is relevant: the first share of a device consumes its counters."""
        known = self._first_shares.get(at)
        if known is None:
            known = False
            for index in self._future.classes_from[at]:
                self._meter.spend(1)
                device = self._attempt.devices[index]
                if device.shareable and device.counter_uses:
                    known = True
                    break
            self._first_shares[at] = known
        return known

    # --- counters ---

    def _counters(
        self, at: int, alternative: Alternative | None, position: int
    ) -> tuple[Hashable, int]:
        """What is left of counters that could run short, and the frames that consume them."""
        later = self._demand(at if alternative is None else at + 1)
        own = {} if alternative is None else self._demand_of(alternative)
        left = self._attempt.counters.left
        relevant = 0
        state: list[tuple[CounterKey, int]] = []
        for key, frames in self._conflict_sets.by_counter.items():
            demand = later.get(key, 0)
            users = own.get(key)
            if users is not None:
                positions, sums = users
                demand += sums[bisect_left(positions, position)]
            if demand and demand > left[key]:
                state.append((key, left[key]))
                relevant |= frames
        self._meter.spend(len(self._conflict_sets.by_counter))
        return frozenset(state), relevant

    def _has_groups(self) -> bool:
        """Whether any device could be kept out of a counter set by its compatibility groups."""
        if self._groups is None:
            self._groups = False
            for index in self._future.classes_from[0]:
                self._meter.spend(1)
                if any(use.groups for use in self._attempt.devices[index].counter_uses):
                    self._groups = True
                    break
        return self._groups

    def _demand(self, at: int) -> dict[CounterKey, int]:
        """An upper bound of what devices in domains from a request on consume together."""
        known = self._demand_from.get(at)
        if known is None:
            known = {}
            for index in self._future.classes_from[at]:
                keys = self._attempt.devices[index].counter_keys
                self._meter.spend(1 + len(keys))
                for key, amount in keys:
                    if amount > 0:
                        known[key] = known.get(key, 0) + amount
            self._demand_from[at] = known
        return known

    def _demand_of(self, alternative: Alternative) -> dict[CounterKey, tuple[list[int], list[int]]]:
        """By counter: positions of its users in the domain, and what they consume from there on."""
        known = self._demand_in.get(alternative)
        if known is None:
            known = {}
            indices = self._future.domains[alternative].indices
            for position in reversed(range(len(indices))):
                keys = self._attempt.devices[indices[position]].counter_keys
                self._meter.spend(1 + len(keys))
                for key, amount in keys:
                    if amount > 0:
                        positions, sums = known.setdefault(key, ([], [0]))
                        positions.append(position)
                        sums.append(sums[-1] + amount)
            for positions, sums in known.values():
                self._meter.spend(1 + len(positions) // 16)
                positions.reverse()
                sums.reverse()
            self._demand_in[alternative] = known
        return known
