"""State ahead: what the rest of a search can feel of the devices that are picked.

Two moments of a search with the same state ahead end the same way. Whatever cannot make a difference any more is left
out: devices that no later request could take, counters of which there is enough for all that could still use them,
constraints of claims that are done. Of devices that are alike only the likeness counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable

from allot.allocation.constraints import Constraint
from allot.allocation.devices import CounterKey
from allot.allocation.requests import Alternative
from allot.allocation.search.attempt import Attempt
from allot.allocation.search.conflict_sets import Blame
from allot.allocation.search.domains import Outlook


class StateAhead:
    """Compares moments of one search."""

    def __init__(self, attempt: Attempt, outlook: Outlook, blame: Blame) -> None:
        self._attempt = attempt
        self._meter = attempt.rules.meter
        self._outlook = outlook
        self._blame = blame
        self._constraints: dict[int, list[Constraint]] = {}
        self._payers: dict[int, bool] = {}
        self._groups: bool | None = None
        self._demand_from: dict[int, dict[CounterKey, int]] = {}
        self._demand_in: dict[Alternative, dict[CounterKey, tuple[list[int], list[int]]]] = {}

    def of(self, at: int, alternative: Alternative | None, position: int) -> tuple[Hashable, int]:
        """The state ahead of request number `at`, and the frames behind it.

        With an alternative, its devices from `position` on are still to be tried.
        """
        self._meter.spend(8 + 2 * len(self._attempt.picks))
        uses, felt = self._uses(at, alternative, position)
        constraints = self._felt_constraints(at)
        for constraint in constraints:
            felt |= self._blame.by_constraint.get(constraint, 0)
        state: Hashable = (tuple(uses), tuple(each.state() for each in constraints))
        if self._blame.by_counter:
            counters, payers = self._counters(at, alternative, position)
            state, felt = (state, counters), felt | payers
        if self._blame.by_set and self._has_groups():
            groups = self._attempt.counters.groups
            state = (state, frozenset((key, groups[key]) for key in self._blame.by_set))
            for frames in self._blame.by_set.values():
                felt |= frames
        return state, felt

    def _uses(
        self, at: int, alternative: Alternative | None, position: int
    ) -> tuple[list[tuple[int, bool, Hashable]], int]:
        """How devices are used that could still be wanted, in a form that does not tell those alike apart."""
        attempt, outlook = self._attempt, self._outlook
        here = outlook.classes_from[at]
        uses: list[tuple[int, bool, Hashable]] = []
        felt = 0
        if alternative is None:
            for index, frames in self._blame.by_device.items():
                class_ = here.get(index)
                if class_ is not None:
                    felt |= frames
                    uses.append((class_, False, attempt.use_of(index)))
        else:
            later = outlook.classes_from[at + 1]
            domain = outlook.domains[alternative]
            indices = domain.indices
            boundary = indices[position] if position < len(indices) else len(attempt.devices)
            for index, frames in self._blame.by_device.items():
                is_ahead = index >= boundary and index in domain.traits
                class_ = here.get(index) if is_ahead else later.get(index)
                if class_ is not None:
                    felt |= frames
                    uses.append((class_, is_ahead, attempt.use_of(index)))
        uses.sort()
        return uses, felt

    def _felt_constraints(self, at: int) -> list[Constraint]:
        """The constraints of the claim that still matter from a request on."""
        known = self._constraints.get(at)
        if known is None:
            requests = self._outlook.requests
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

    def shares_pay(self, at: int) -> bool:
        """Whether what is *not* picked can be felt: a share that would have paid for the next."""
        known = self._payers.get(at)
        if known is None:
            known = False
            for index in self._outlook.classes_from[at]:
                self._meter.spend(1)
                device = self._attempt.devices[index]
                if device.shareable and device.counter_uses:
                    known = True
                    break
            self._payers[at] = known
        return known

    # --- counters ---

    def _counters(
        self, at: int, alternative: Alternative | None, position: int
    ) -> tuple[Hashable, int]:
        """What is used of counters that could run short, and the frames that use them."""
        later = self._demand(at if alternative is None else at + 1)
        own = {} if alternative is None else self._demand_of(alternative)
        left = self._attempt.counters.left
        felt = 0
        state: list[tuple[CounterKey, int]] = []
        for key, frames in self._blame.by_counter.items():
            demand = later.get(key, 0)
            users = own.get(key)
            if users is not None:
                positions, sums = users
                demand += sums[bisect_left(positions, position)]
            if demand and demand > left[key]:
                state.append((key, left[key]))
                felt |= frames
        self._meter.spend(len(self._blame.by_counter))
        return frozenset(state), felt

    def _has_groups(self) -> bool:
        """Whether any device could be kept out of a counter set by its compatibility groups."""
        if self._groups is None:
            self._groups = False
            for index in self._outlook.classes_from[0]:
                self._meter.spend(1)
                if any(use.groups for use in self._attempt.devices[index].counter_uses):
                    self._groups = True
                    break
        return self._groups

    def _demand(self, at: int) -> dict[CounterKey, int]:
        """What all devices that could be wanted from a request on use up together, at most."""
        known = self._demand_from.get(at)
        if known is None:
            known = {}
            for index in self._outlook.classes_from[at]:
                keys = self._attempt.devices[index].counter_keys
                self._meter.spend(1 + len(keys))
                for key, amount in keys:
                    if amount > 0:
                        known[key] = known.get(key, 0) + amount
            self._demand_from[at] = known
        return known

    def _demand_of(self, alternative: Alternative) -> dict[CounterKey, tuple[list[int], list[int]]]:
        """By counter: where in the domain its users are, and what they use up from there on."""
        known = self._demand_in.get(alternative)
        if known is None:
            known = {}
            indices = self._outlook.domains[alternative].indices
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
