"""An auditor of allocations: reads what is published and what claims were given, and knows the rules only.

It shares no code with the ledger, the allocator or the API server. Laws (DESIGN, what must always hold, 1):

- a device that does not allow multiple allocations has one holder, whole or share;
- a device that a claim holds as a whole has no other holder;
- the shares of a device do not exceed its capacities as published when the last share was added;
- a device is not added to a counter set that does not have enough left for it.

A driver may publish less than is held. Then nothing is broken, as long as nothing is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from allot.api.claims import AllocationResult, DeviceRequestAllocationResult
from allot.api.slices import Device, DeviceCapacity, ResourceSlice

Identity = tuple[str, str, str]


class Holding(NamedTuple):
    """A device, or a share of one, that a claim was given."""

    claim: str
    share: str
    consumed: dict[str, Fraction]


class Broken(AssertionError):  # noqa: N818 - it is a verdict
    """A law is broken."""


class Auditor:
    """Follows a history of publications, allocations and releases."""

    def __init__(self) -> None:
        self._slices: tuple[ResourceSlice, ...] = ()
        self._held: dict[Identity, list[Holding]] = {}

    def published(self, slices: Iterable[ResourceSlice]) -> None:
        """These slices are all there are now."""
        self._slices = tuple(slices)

    def released(self, claim: str) -> None:
        for holdings in self._held.values():
            holdings[:] = [holding for holding in holdings if holding.claim != claim]

    def inherited(self, claim: str, allocation: AllocationResult) -> None:
        """What was allocated before the history begins is not judged."""
        for identity, holding in _holdings(claim, allocation):
            self._held.setdefault(identity, []).append(holding)

    def allocated(self, claim: str, allocation: AllocationResult) -> None:
        """Judge what a claim was given, device by device. `Broken` if a law is."""
        for identity, holding in _holdings(claim, allocation):
            self._judge(identity, holding)
            self._held.setdefault(identity, []).append(holding)

    def _judge(self, identity: Identity, holding: Holding) -> None:
        others = self._held.get(identity, [])
        device = self._device(identity)
        if any(not other.share for other in others) or (others and not holding.share):
            raise Broken(f"{identity} is held as a whole, and is given out again: {others}")
        if device is None:
            return
        if others and not device.allow_multiple_allocations:
            raise Broken(f"{identity} is exclusive, has holders, and is given out again: {others}")
        if any(other.share == holding.share for other in others if other.claim != holding.claim):
            raise Broken(f"{identity}: share {holding.share} is given to two claims")
        if holding.share:
            self._judge_capacity(identity, device, [*others, holding])
        if not others:
            self._judge_counters(identity, device)

    def _judge_capacity(self, identity: Identity, device: Device, holdings: list[Holding]) -> None:
        for name, capacity in device.capacity.items():
            total = sum(_amount(holding, name, capacity) for holding in holdings)
            if total > Fraction(capacity.value.nanos):
                raise Broken(f"{identity}: {total} of {name} is consumed, of {capacity.value}")

    def _judge_counters(self, identity: Identity, device: Device) -> None:
        """The device is held from now on, so whatever it consumes must be there."""
        driver, pool, name = identity
        published = self._pool(driver, pool)
        used: dict[tuple[str, str], int] = {}
        for other in (device for slice_ in published for device in slice_.spec.devices or ()):
            if other.name == name or self._held.get((driver, pool, other.name)):
                for use in other.consumes_counters:
                    for counter, amount in use.counters.items():
                        key = (use.counter_set, counter)
                        used[key] = used.get(key, 0) + amount.value.nanos
        wanted = {
            (use.counter_set, counter)
            for use in device.consumes_counters
            for counter in use.counters
        }
        for slice_ in published:
            for counter_set in slice_.spec.shared_counters or ():
                for counter, amount in counter_set.counters.items():
                    key = (counter_set.name, counter)
                    if key in wanted and used[key] > amount.value.nanos:
                        raise Broken(f"{identity}: {used[key]} of counter {key} is in use")

    def _pool(self, driver: str, pool: str) -> list[ResourceSlice]:
        found = [
            slice_
            for slice_ in self._slices
            if (slice_.spec.driver, slice_.spec.pool.name) == (driver, pool)
        ]
        newest = max((slice_.spec.pool.generation for slice_ in found), default=0)
        return [slice_ for slice_ in found if slice_.spec.pool.generation == newest]

    def _device(self, identity: Identity) -> Device | None:
        driver, pool, name = identity
        for slice_ in self._pool(driver, pool):
            for device in slice_.spec.devices or ():
                if device.name == name:
                    return device
        return None


def _holdings(claim: str, allocation: AllocationResult) -> Iterator[tuple[Identity, Holding]]:
    for result in allocation.devices.results:
        if not result.admin_access:
            identity = (result.driver, result.pool, result.device)
            yield identity, Holding(claim, result.share_id or "", _consumed(result))


def _consumed(result: DeviceRequestAllocationResult) -> dict[str, Fraction]:
    return {name: Fraction(amount.nanos) for name, amount in result.consumed_capacity.items()}


def _amount(holding: Holding, name: str, capacity: DeviceCapacity) -> Fraction:
    """What a share consumes; if that is missing or invalid, as much as a request without an amount."""
    amount = holding.consumed.get(name)
    if amount is not None and amount >= 0:
        return amount
    policy = capacity.request_policy
    if policy is not None and policy.default is not None:
        return Fraction(policy.default.nanos)
    return Fraction(capacity.value.nanos)
