"""The pools of a cluster as objects change: which are outdated, and the devices of each as they are now.

A change of a claim, a slice or a taint rule marks pools as outdated. What is made of them, rows or cells, is computed
again only for these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any, Final

from allot.allocation.devices import PoolId
from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceTaintRule
from allot.api.identities import DeviceId, ObjectKey
from allot.api.slices import Device, ResourceSlice
from allot.client import resources
from allot.client.resources import Resource
from allot.controllers.pool_status import newest_slices
from allot.features import DEVICE_TAINT_RULES, FeatureGates
from allot.questions.device_holders import DeviceHolders
from allot.questions.devices import DeviceRow, PoolDevices, unpublished_row

POOL_KINDS: Final[tuple[Resource[Any], ...]] = (
    resources.RESOURCE_SLICES,
    resources.DEVICE_TAINT_RULES,
    resources.RESOURCE_CLAIMS,
)
"""The kinds that decide the state of devices."""


class LivePools:
    """Slices, claims and taint rules of a cluster, by pool."""

    def __init__(self, gates: FeatureGates) -> None:
        self.holders = DeviceHolders(gates)
        self._has_rules = DEVICE_TAINT_RULES in gates
        self._slices: dict[PoolId, dict[ObjectKey, ResourceSlice]] = {}
        self._newest: dict[PoolId, tuple[ResourceSlice, ...]] = {}
        self._rules: dict[ObjectKey, DeviceTaintRule] = {}
        self._outdated: dict[PoolId, None] = {}

    # --- changes of the cluster ---

    def change(self, resource: Resource[Any], old: Any, new: Any) -> None:
        """Take a change of an object; None: it did not or does not exist. Other kinds are ignored."""
        if resource is resources.RESOURCE_SLICES:
            self._change_slice(old, new)
        elif resource is resources.RESOURCE_CLAIMS:
            self._change_claim(old, new)
        elif resource is resources.DEVICE_TAINT_RULES and self._has_rules:
            self._change_rule(old, new)

    def _change_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if old is not None:
            pool = self._slice_changed(old)
            slices = self._slices.get(pool, {})
            slices.pop(old.key, None)
            if not slices:
                self._slices.pop(pool, None)
        if new is not None:
            pool = self._slice_changed(new)
            self._slices.setdefault(pool, {})[new.key] = new

    def _slice_changed(self, slice_: ResourceSlice) -> PoolId:
        pool = PoolId(slice_.spec.driver, slice_.spec.pool.name)
        self._outdated[pool] = None
        self._newest.pop(pool, None)
        return pool

    def _change_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        for claim in (old, new):
            if claim is not None and claim.status.allocation is not None:
                for result in claim.status.allocation.devices.results:
                    self._outdated[PoolId(result.driver, result.pool)] = None
        if new is not None and new.status.allocation is not None:
            self.holders.put(new)
        elif old is not None:
            self.holders.remove(old)

    def _change_rule(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        if old is not None:
            self._rules.pop(old.key, None)
        if new is not None:
            self._rules[new.key] = new
        self._outdated.update(dict.fromkeys(self._slices))

    # --- pools ---

    @property
    def outdated(self) -> int:
        """The number of outdated pools."""
        return len(self._outdated)

    def take_outdated(self, at_most: int | None = None) -> list[PoolId]:
        """Outdated pools, which the caller computes again now."""
        pools = list(islice(self._outdated, at_most))
        for pool in pools:
            del self._outdated[pool]
        return pools

    def slices(self, pool: PoolId) -> tuple[ResourceSlice, ...]:
        """The slices of the newest generation."""
        known = self._slices.get(pool)
        if not known:
            return ()
        if pool not in self._newest:
            self._newest[pool] = newest_slices(known.values())[pool]
        return self._newest[pool]

    def devices(self, pool: PoolId) -> PoolDevices | None:
        """The published devices of a pool; None if it has no slices."""
        slices = self.slices(pool)
        rules = tuple(self._rules.values())
        return PoolDevices(pool, slices, self.holders, rules) if slices else None

    def unpublished_rows(self, pool: PoolId, published: Collection[str]) -> Iterator[DeviceRow]:
        """The rows of devices that claims hold and that are not among the published ones, by name."""
        taken = self.holders.ledger.taken(pool)
        for device in sorted(name for name in taken if name not in published):
            yield unpublished_row(DeviceId(*pool, device), self.holders)

    def published(self, device: DeviceId) -> tuple[ResourceSlice, Device] | None:
        """The device and its slice; None if it is not published."""
        for slice_ in self.slices(PoolId(device.driver, device.pool)):
            for each in slice_.spec.devices or ():
                if each.name == device.device:
                    return slice_, each
        return None
