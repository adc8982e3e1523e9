"""Bounds: proofs by counting that the rest of a search cannot succeed.

Each bound counts in a relaxation of the problem: if the relaxation has no solution, neither has the
problem, and the subtree can be pruned.

- enough candidates left for each request
- match: some value that enough candidates of every request have (counted per value)
- distinct: at least as many values as devices (pigeonhole)
- counters: no more partitions than the shared counters allow
- capacity: no more shares, and no larger ones, than the devices have room for
- match across claims: enough groups of devices that share a value
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

from allot.allocation.constraints import Constraint
from allot.allocation.devices import CounterKey
from allot.allocation.requests import Alternative, PreparedClaim
from allot.allocation.search.attempt import AllocationAttempt
from allot.allocation.search.domains import FutureDomains, Token, value_tokens

_AT_ONCE: Final = 512
"""How many devices are checked before their work is metered."""


class Need(NamedTuple):
    """How many more devices an alternative needs, and where in its domain they start."""

    alternative: Alternative
    devices: int
    start: int


class _Supply(NamedTuple):
    """What is left for a need: candidates, and per constraint the possible values."""

    need: Need
    candidates: frozenset[int]
    values: dict[Constraint, frozenset[Token]]


class Bounds:
    """Counts for one set of future domains and the picks of the attempt."""

    def __init__(self, attempt: AllocationAttempt, future: FutureDomains) -> None:
        self._attempt = attempt
        self._meter = attempt.rules.meter
        self._future = future
        self.work = 0
        """How many devices have been counted so far, for all constraints."""

    def values_left(
        self, request: int, current: Need | None, end: int
    ) -> dict[Constraint, frozenset[Token]] | None:
        """Per match constraint, the values still possible; None if the requests cannot be satisfied.

        Covers the requests from number `request` up to, not including, `end`. `current` is the remaining
        need of the first one if its alternative is chosen already.
        """
        supplies_by_request: list[list[_Supply]] = []
        for at in range(request, end):
            if at == request and current is not None:
                needs = [current]
            else:
                alternatives = self._future.requests[at].alternatives
                needs = [Need(each, each.count, 0) for each in alternatives]
            supplies = [supply for need in needs if (supply := self._supply(need)) is not None]
            if not supplies:
                return None
            supplies_by_request.append(supplies)
        settled = [supplies[0] for supplies in supplies_by_request if len(supplies) == 1]
        if self._devices_do_not_suffice(settled):
            return None
        return self._shared_values(supplies_by_request)

    # --- one alternative ---

    def _supply(self, need: Need) -> _Supply | None:
        """None if the alternative cannot get its devices, whatever the other requests take."""
        alternative = need.alternative
        domain = self._future.domains[alternative]
        if domain.is_infeasible:
            return None
        if need.devices <= 0:
            return _Supply(need, frozenset(), {})
        attempt = self._attempt
        self._meter.alternative = alternative
        self.work += (len(domain.indices) - need.start) * (1 + len(alternative.constraints))
        candidates: list[int] = []
        for start in range(need.start, len(domain.indices), _AT_ONCE):
            some = domain.indices[start : start + _AT_ONCE]
            self._meter.spend(1 + len(some) // 4)
            candidates += (index for index in some if not attempt.is_in_use(alternative, index))
        if attempt.shares:
            candidates = self._filtered(candidates, lambda at: self._has_room(alternative, at))
        if attempt.counters.consumers:
            candidates = self._filtered(candidates, self._has_counters_left)
        if len(candidates) < need.devices:
            return None
        values: dict[Constraint, frozenset[Token]] = {}
        for constraint, tokens in zip(alternative.constraints, domain.tokens, strict=True):
            candidates, values[constraint] = self._admitted(
                constraint, tokens, candidates, need.devices
            )
        if len(candidates) < need.devices:
            return None
        if self._most_within_counters(candidates, need.devices) < need.devices:
            return None
        return _Supply(need, frozenset(candidates), values)

    def _filtered(self, candidates: list[int], is_left: Callable[[int], bool]) -> list[int]:
        left: list[int] = []
        for start in range(0, len(candidates), _AT_ONCE):
            some = candidates[start : start + _AT_ONCE]
            self._meter.spend(1 + len(some) // 2)
            left += filter(is_left, some)
        return left

    def _has_counters_left(self, index: int) -> bool:
        attempt = self._attempt
        device = attempt.devices[index]
        if not device.counter_uses or (device.shareable and attempt.has_share(index)):
            return True
        return attempt.counters.short(device) is None

    def _has_room(self, alternative: Alternative, index: int) -> bool:
        attempt = self._attempt
        if index not in attempt.shares:
            return True
        consumed = attempt.rules.consumption(alternative, index)
        return consumed is not None and attempt.has_capacity(index, consumed)

    def _admitted(
        self,
        constraint: Constraint,
        tokens: dict[int, frozenset[Token]],
        candidates: list[int],
        count: int,
    ) -> tuple[list[int], frozenset[Token]]:
        """The candidates that a constraint admits, and their values."""
        present = constraint.present
        if constraint.is_match:
            if present:
                enough = _tokens_of(constraint)
                candidates = self._filtered(
                    candidates, lambda index: not enough.isdisjoint(tokens[index])
                )
            counted: Counter[Token] = Counter()
            for start in range(0, len(candidates), _AT_ONCE):
                some = candidates[start : start + _AT_ONCE]
                self._meter.spend(1 + len(some) // 4)
                counted.update(chain.from_iterable(map(tokens.__getitem__, some)))
            found = frozenset(token for token, having in counted.items() if having >= count)
            if present:
                found &= enough
            if len(found) == len(counted):
                return candidates, found
            return (
                self._filtered(candidates, lambda index: not found.isdisjoint(tokens[index])),
                found,
            )
        if present:
            used = _tokens_of(constraint)
            candidates = self._filtered(candidates, lambda index: used.isdisjoint(tokens[index]))
        values: set[Token] = set()
        for start in range(0, len(candidates), _AT_ONCE):
            some = candidates[start : start + _AT_ONCE]
            self._meter.spend(1 + len(some) // 4)
            values.update(chain.from_iterable(map(tokens.__getitem__, some)))
        return (candidates if len(values) >= count else []), frozenset(values)

    # --- values of constraints, over all requests of a claim ---

    def _shared_values(
        self, supplies_by_request: Sequence[Sequence[_Supply]]
    ) -> dict[Constraint, frozenset[Token]] | None:
        """None if some constraint has no value, or too few, for all requests that it covers."""
        shared: dict[Constraint, frozenset[Token]] = {}
        needed: Counter[Constraint] = Counter()
        for supplies in supplies_by_request:
            always = set(supplies[0].values).intersection(*(supply.values for supply in supplies))
            for constraint in always:
                here = frozenset().union(*(supply.values[constraint] for supply in supplies))
                known = shared.get(constraint)
                if constraint.is_match:
                    shared[constraint] = here if known is None else known & here
                    if not shared[constraint]:
                        return None
                else:
                    shared[constraint] = here if known is None else known | here
                    needed[constraint] += min(supply.need.devices for supply in supplies)
        if any(len(shared[constraint]) < count for constraint, count in needed.items()):
            return None
        return {constraint: tokens for constraint, tokens in shared.items() if constraint.is_match}

    # --- devices, over requests with common candidates ---

    def _devices_do_not_suffice(self, supplies: Iterable[_Supply]) -> bool:
        """Whether requests together need more devices than they have candidates.

        Checks all requests together, and the requests that have the same domain.
        """
        everyone: list[_Supply] = []
        groups: dict[tuple[int, ...], list[_Supply]] = {}
        for supply in supplies:
            alternative = supply.need.alternative
            if not alternative.is_admin and supply.candidates:
                everyone.append(supply)
                groups.setdefault(self._future.domains[alternative].indices, []).append(supply)
        if len(groups) > 1 and self._is_too_small(everyone):
            return True
        return any(len(group) > 1 and self._is_too_small(group) for group in groups.values())

    def _is_too_small(self, group: Sequence[_Supply]) -> bool:
        count = sum(supply.need.devices for supply in group)
        candidates: set[int] = set()
        for supply in group:
            self._meter.spend(1 + len(supply.candidates) // 16)
            candidates |= supply.candidates
        shared: list[int] = []
        room = 0
        if self._attempt.rules.consumable:
            shared = self._filtered(sorted(candidates), self._is_shared)
            for index in shared:
                self._meter.spend(4 * len(group))
                room += self._most_shares(index, group)
        if room + self._most_within_counters(candidates.difference(shared), count - room) < count:
            return True
        if not shared:
            return self._groups_are_too_small(group)
        return len(shared) == len(candidates) and self._is_overbooked(group, shared)

    def _groups_are_too_small(self, group: Sequence[_Supply]) -> bool:
        """Whether too few groups of matching devices are large enough for the claims.

        Eight devices with the same value serve one claim that needs five of them, not one and a half.
        """
        needed: dict[str, Counter[Constraint]] = {}
        lots: dict[str, set[tuple[Token, int]]] = {}
        counted: dict[tuple[PreparedClaim, str], Constraint] = {}
        for supply in group:
            alternative = supply.need.alternative
            domain = self._future.domains[alternative]
            for constraint, tokens in zip(alternative.constraints, domain.tokens, strict=True):
                name = constraint.attribute
                # One constraint per claim: two of them may cover the same devices.
                first = counted.setdefault((alternative.claim, name), constraint)
                if constraint.is_match and not constraint.present and constraint is first:
                    needed.setdefault(name, Counter())[constraint] += supply.need.devices
                    self._meter.spend(1 + len(supply.candidates))
                    lots.setdefault(name, set()).update(
                        (token, index) for index in supply.candidates for token in tokens[index]
                    )
        for name, devices_by_constraint in needed.items():
            least = min(devices_by_constraint.values())
            sizes = Counter(token for token, _ in lots[name])
            if sum(size // least for size in sizes.values()) < len(devices_by_constraint):
                return True
        return False

    def _is_overbooked(self, group: Sequence[_Supply], shared: Sequence[int]) -> bool:
        """Whether the requests need more of some capacity than all devices together have left."""
        attempt = self._attempt
        names = set.intersection(
            *({name for name, _ in attempt.devices[index].capacity} for index in shared)
        )
        for name in names:
            wanted = 0
            for supply in group:
                self._meter.spend(1 + 2 * len(supply.candidates))
                amounts = (
                    attempt.rules.consumption(supply.need.alternative, index)
                    for index in supply.candidates
                )
                least = min(consumed[name].nanos for consumed in amounts if consumed is not None)
                wanted += supply.need.devices * least
            if wanted > sum(self._left(index, name) for index in shared):
                return True
        return False

    def _left(self, index: int, name: str) -> int:
        attempt = self._attempt
        device = attempt.devices[index]
        allocated = attempt.rules.ledger.consumed(device.id, device.capacity).get(name, 0)
        attempted = attempt.consumed.get(index, {}).get(name, 0)
        return device.device.capacity[name].value.nanos - allocated - attempted

    def _is_shared(self, index: int) -> bool:
        return self._attempt.devices[index].shareable

    def _most_shares(self, index: int, group: Sequence[_Supply]) -> int:
        """An upper bound of how many requests of the group can share the device."""
        attempt = self._attempt
        wanted = [
            consumed
            for supply in group
            if index in supply.candidates
            and (consumed := attempt.rules.consumption(supply.need.alternative, index)) is not None
        ]
        most = len(wanted)
        for name, _ in attempt.devices[index].capacity:
            least = min(consumed[name].nanos for consumed in wanted)
            if least > 0:
                most = min(most, self._left(index, name) // least)
        return most

    # --- counters ---

    def _most_within_counters(self, candidates: Iterable[int], enough: int) -> int:
        """An upper bound of how many candidates the shared counters allow together.

        Counters are applied in turn, the most restrictive first, each to candidates that no earlier one
        excluded. Exact only below `enough`.
        """
        attempt = self._attempt
        most = 0
        users_by_counter: dict[CounterKey, list[tuple[int, int]]] = {}
        given_back: dict[CounterKey, int] = {}
        for index in candidates:
            most += 1
            device = attempt.devices[index]
            if not device.counter_uses or (device.shareable and attempt.has_share(index)):
                continue
            self._meter.spend(1 + len(device.counter_keys) // 2)
            for key, amount in device.counter_keys:
                if amount > 0:
                    users_by_counter.setdefault(key, []).append((amount, index))
                elif amount < 0:
                    given_back[key] = given_back.get(key, 0) - amount
        scarce: list[tuple[int, CounterKey, int]] = []
        for key, users in users_by_counter.items():
            self._meter.spend(1 + len(users) // 4)
            left = attempt.counters.left[key] + given_back.get(key, 0)
            too_many = _left_over(users, left)
            if too_many:
                scarce.append((-too_many, key, left))
        scarce.sort()
        counted: set[int] = set()
        for _, key, left in scarce:
            if most < enough:
                break
            self._meter.spend(1 + len(users_by_counter[key]) // 4)
            users = [user for user in users_by_counter[key] if user[1] not in counted]
            too_many = _left_over(users, left)
            if too_many:
                most -= too_many
                counted.update(index for _, index in users)
        return most


def _left_over(users: list[tuple[int, int]], left: int) -> int:
    """At least how many users of a counter cannot be served."""
    fitting = 0
    for amount, _ in sorted(users):
        left -= amount
        if left < 0:
            break
        fitting += 1
    return len(users) - fitting


def _tokens_of(constraint: Constraint) -> frozenset[Token]:
    """The values that the picked devices have in common (match) or have used (distinct)."""
    if constraint.is_match:
        return value_tokens(constraint.present[-1], lists=constraint.lists)
    return frozenset().union(
        *(value_tokens(value, lists=constraint.lists) for value in constraint.present)
    )
