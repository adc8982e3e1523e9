"""Domains: for every alternative the devices that could serve it, computed before the search.

A device that is refused while nothing is picked is refused for good, because picks only consume more:
it never has to be tried. A device whose expressions fail stays in the domain: the error must surface
when the search reaches it, not earlier, and nothing that leads there may be pruned.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from allot.allocation.attributes import AttributeSet
from allot.allocation.errors import AllocationError
from allot.allocation.requests import Alternative, PreparedRequest
from allot.allocation.search.attempt import AllocationAttempt

Token = tuple[str, Hashable]
"""A value two devices can have in common."""


_DEVICE_WORK: Final = 6
"""Units of work to compute the traits of a device."""


class Domain(NamedTuple):
    """The devices that could serve an alternative, in order, with their traits and values."""

    indices: tuple[int, ...]
    traits: dict[int, Hashable]
    """By device: all that distinguishes it for this alternative."""
    tokens: tuple[dict[int, frozenset[Token]], ...]
    """Per constraint of the alternative, by device: its values."""
    may_fail: bool
    """Whether trying its devices can end in an error."""
    is_infeasible: bool
    """Whether mode All requires a device that cannot be taken."""


class FutureDomains:
    """The domains of all alternatives, and the equivalence classes of devices from each request on."""

    def __init__(self, attempt: AllocationAttempt, requests: Sequence[PreparedRequest]) -> None:
        self._attempt = attempt
        self._meter = attempt.rules.meter
        self.requests = requests
        self.domains: dict[Alternative, Domain] = {
            alternative: self._domain(alternative)
            for request in requests
            for alternative in request.alternatives
        }
        self.next_failing = self._next_failing()
        """By request: the first one from it on whose devices can raise an error."""
        self.classes_from = self._classes()
        """By request: the equivalence class of every device in a domain of it or of a later request.

        Devices of one class are interchangeable from that request on.
        """

    # --- domains ---

    def _domain(self, alternative: Alternative) -> Domain:
        tokens: tuple[dict[int, frozenset[Token]], ...] = tuple({} for _ in alternative.constraints)
        traits: dict[int, Hashable] = {}
        # With mode All a constraint that does not hold is an error, and it depends on other picks.
        may_fail = alternative.wants_all and bool(alternative.constraints)
        wanted: Sequence[int] = (
            alternative.all_devices if alternative.wants_all else range(len(self._attempt.devices))
        )
        self._meter.alternative = alternative
        for index in wanted:
            self._meter.spend(_DEVICE_WORK + 2 * len(alternative.constraints))
            try:
                trait = self._trait(alternative, index, tokens)
            except AllocationError:
                may_fail = True
                traits[index] = ("may fail", index)
                for values in tokens:
                    values.setdefault(index, frozenset())
                continue
            if trait is not None:
                traits[index] = trait
        is_infeasible = alternative.wants_all and (not wanted or len(traits) < len(wanted))
        return Domain(tuple(traits), traits, tokens, may_fail, is_infeasible)

    def _trait(
        self,
        alternative: Alternative,
        index: int,
        tokens: tuple[dict[int, frozenset[Token]], ...],
    ) -> Hashable | None:
        attempt = self._attempt
        check = attempt.check_required if alternative.wants_all else attempt.check
        pick = check(alternative, index)
        if pick is None:
            return None
        device = attempt.devices[index]
        values: list[AttributeSet | None] = []
        for constraint, token_by_device in zip(alternative.constraints, tokens, strict=True):
            value = attempt.rules.attribute(constraint, alternative, index)
            assert value is not None, "the check would have refused the device"
            token_by_device[index] = value_tokens(value, lists=constraint.lists)
            values.append(value)
        consumed = tuple(amount.nanos for amount in pick.consumed.values())
        allocated = attempt.rules.ledger.consumed(device.id, device.capacity)
        left = tuple(
            (name, capacity.value.nanos - allocated.get(name, 0))
            for name, capacity in (device.capacity if pick.shared else ())
        )
        counters: Hashable = None
        if device.counter_uses:
            uses = tuple(
                (use.counter_set, tuple(sorted(use.amounts.items())), use.groups)
                for use in device.counter_uses
            )
            counters = (device.id.driver, device.id.pool, uses, pick.consumes_counters)
        return (pick.shared, consumed, left, counters, tuple(values))

    # --- later requests ---

    def _next_failing(self) -> list[int]:
        found = [len(self.requests)] * (len(self.requests) + 1)
        for at in reversed(range(len(self.requests))):
            alternatives = self.requests[at].alternatives
            may_fail = any(self.domains[alternative].may_fail for alternative in alternatives)
            found[at] = at if may_fail else found[at + 1]
        return found

    def first_possible_error(self, request: int, alternative: Alternative | None) -> int:
        """The first request, from `request` on, at which an error is possible.

        Once the alternative is chosen, the others of its request do not count.
        """
        if alternative is None:
            return self.next_failing[request]
        if self.domains[alternative].may_fail:
            return request
        return self.next_failing[request + 1]

    def _classes(self) -> list[dict[int, int]]:
        number_by_traits: dict[Hashable, int] = {}
        classes: list[dict[int, int]] = [{} for _ in range(len(self.requests) + 1)]
        for at in reversed(range(len(self.requests))):
            later = classes[at + 1]
            alternatives = self.requests[at].alternatives
            domains = [self.domains[each] for each in alternatives]
            # Mode All takes its devices in a fixed order: which of two is taken decides whether
            # it stops there, or reaches an unmet constraint first and fails.
            order_matters = any(each.wants_all and each.constraints for each in alternatives)
            relevant: dict[int, None] = {}
            for indices in (*(domain.indices for domain in domains), tuple(later)):
                self._meter.spend(1 + len(indices) // 16)
                relevant.update(dict.fromkeys(indices))
            for index in relevant:
                self._meter.spend(2 + len(domains))
                own = tuple(domain.traits.get(index) for domain in domains)
                key = (at, own, later.get(index), index if order_matters else None)
                classes[at][index] = number_by_traits.setdefault(key, len(number_by_traits))
        return classes


def value_tokens(value: AttributeSet, *, lists: bool) -> frozenset[Token]:
    """What two devices must have in common to match, or must not to be distinct."""
    if lists:
        return frozenset((value.kind, element) for element in value.values)
    return frozenset(((value.kind, (value.values, value.is_list)),))
