"""The devices that requests ask about: slices, allocated devices and taint rules, kept up to date by events."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Final

from allot.allocation.allocated_devices import Ledger
from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceTaintRule
from allot.api.pool_status import ResourcePoolStatusRequestSpec
from allot.api.slices import ResourceSlice
from allot.client import resources
from allot.client.cooperative import with_pauses
from allot.client.informer import Informer, InformerFactory
from allot.features import DEVICE_TAINT_RULES, FeatureGates

_BY_DRIVER: Final = "driver"
_BY_POOL: Final = "pool"


def _driver(slice_: ResourceSlice) -> tuple[str, ...]:
    return (slice_.spec.driver,)


def _pool(slice_: ResourceSlice) -> tuple[str, ...]:
    return (f"{slice_.spec.driver} {slice_.spec.pool.name}",)


class PoolInventory:
    """The state of all pools. The ledger of allocated devices follows claim events, from the first request on."""

    def __init__(self, gates: FeatureGates) -> None:
        self.ledger = Ledger(gates)
        self._gates = gates
        self._changes: Counter[str] = Counter()
        """The number of changes to slices and claims by driver; "" counts changes that affect all drivers."""
        self._slice_count: Counter[str] = Counter()
        """By driver."""
        self._follows_claims = False
        """Whether claim events change the ledger."""
        self._has_all_claims = False
        self._loading = asyncio.Lock()

    def add_handlers(self, informers: InformerFactory, on_slice: Callable[[str], None]) -> None:
        """Register with the informers. `on_slice` is called with the driver of each changed slice."""
        self._on_slice = on_slice
        self._claims = informers.informer(resources.RESOURCE_CLAIMS)
        self._claims.add_handlers(self._add_claim, self._update_claim, self._remove_claim)
        self._slices = informers.informer(resources.RESOURCE_SLICES)
        self._slices.add_index(_BY_DRIVER, _driver)
        self._slices.add_index(_BY_POOL, _pool)
        self._slices.add_handlers(
            partial(self._note_slice, 1),
            lambda _, slice_: self._note_slice(0, slice_),
            partial(self._note_slice, -1),
        )
        self._rules: Informer[DeviceTaintRule] | None = None
        if DEVICE_TAINT_RULES in self._gates:
            self._rules = informers.informer(resources.DEVICE_TAINT_RULES)
            self._rules.add_handlers(self._note_rule, lambda _, rule: self._note_rule(rule))
            self._rules.add_handlers(on_delete=self._note_rule)

    async def load(self) -> None:
        """Enter all claims into the ledger, if that was not done before. In most clusters there are never requests."""
        async with self._loading:
            if self._has_all_claims:
                return
            self._follows_claims = True
            async for key in with_pauses(tuple(self._claims.store.keys())):
                claim = self._claims.get(key)
                if claim is not None:
                    self._add_claim(claim)
            self._has_all_claims = True

    # --- reads ---

    def unserved_kinds(self) -> Iterator[str]:
        """The kinds without which nothing can be counted, and which the server does not serve."""
        for informer, kind in ((self._slices, "ResourceSlices"), (self._claims, "ResourceClaims")):
            if not informer.lists:
                yield kind

    def version(self, driver: str) -> tuple[int, int]:
        """Changes whenever the answer to requests about the driver may change."""
        return self._changes[driver], self._changes[""]

    def slice_count(self, driver: str) -> int:
        return self._slice_count[driver]

    def drivers(self) -> Iterable[str]:
        """The drivers that have slices."""
        return (driver for driver, count in self._slice_count.items() if count > 0)

    def slices(self, spec: ResourcePoolStatusRequestSpec) -> list[ResourceSlice]:
        """The slices of the requested pools."""
        if spec.pool_name is None:
            return self._slices.by_index(_BY_DRIVER, spec.driver)
        return self._slices.by_index(_BY_POOL, f"{spec.driver} {spec.pool_name}")

    def taint_rules(self) -> Collection[DeviceTaintRule]:
        return self._rules.list() if self._rules is not None else ()

    # --- event handlers ---

    def _add_claim(self, claim: ResourceClaim) -> None:
        allocation = claim.status.allocation
        if allocation is not None and self._follows_claims:
            self.ledger.add(_holder(claim), allocation)
            self._note_devices(claim)

    def _update_claim(self, old: ResourceClaim, new: ResourceClaim) -> None:
        if not self._follows_claims or old.status.allocation == new.status.allocation:
            return
        if old.status.allocation is not None:
            self._remove_claim(old)
        self._add_claim(new)

    def _remove_claim(self, claim: ResourceClaim) -> None:
        if not self._follows_claims:
            return
        self.ledger.remove(_holder(claim))
        self._note_devices(claim)

    def _note_devices(self, claim: ResourceClaim) -> None:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            self._changes[result.driver] += 1

    def _note_slice(self, more: int, slice_: ResourceSlice) -> None:
        driver = slice_.spec.driver
        self._changes[driver] += 1
        self._slice_count[driver] += more
        self._on_slice(driver)

    def _note_rule(self, _: DeviceTaintRule) -> None:
        self._changes[""] += 1


def _holder(claim: ResourceClaim) -> str:
    metadata = claim.metadata
    return f"{metadata.namespace}/{metadata.name}#{metadata.uid}"
