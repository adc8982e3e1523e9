"""The rows of `devices`, kept up to date: after a change only the pools that it concerns are computed again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
from allot.questions.devices import DeviceRow, pool_devices, unpublished_row
from allot.questions.observed_cluster import ObservedCluster


class LiveDevices:
    """Every device of a cluster with its state, by pool."""

    def __init__(self, gates: FeatureGates) -> None:
        self.version = 0
        """Grows when rows are computed."""
        self._holders = DeviceHolders(gates)
        self._slices: dict[PoolId, dict[ObjectKey, ResourceSlice]] = {}
        self._rules: dict[ObjectKey, DeviceTaintRule] = {}
        self._has_rules = DEVICE_TAINT_RULES in gates
        self._rows: dict[PoolId, tuple[DeviceRow, ...]] = {}
        self._outdated: dict[PoolId, None] = {}

    @classmethod
    def of(cls, cluster: ObservedCluster) -> LiveDevices:
        """The devices of a cluster that does not change."""
        found = cls(cluster.gates)
        kinds: tuple[Resource[Any], ...] = (
            resources.DEVICE_TAINT_RULES,
            resources.RESOURCE_CLAIMS,
            resources.RESOURCE_SLICES,
        )
        for resource in kinds:
            for obj in cluster.objects.of(resource):
                found.change(resource, None, obj)
        return found

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
            pool = _pool_of(old)
            slices = self._slices.get(pool, {})
            slices.pop(old.key, None)
            if not slices:
                self._slices.pop(pool, None)
            self._outdated[pool] = None
        if new is not None:
            pool = _pool_of(new)
            self._slices.setdefault(pool, {})[new.key] = new
            self._outdated[pool] = None

    def _change_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        for claim in (old, new):
            if claim is not None and claim.status.allocation is not None:
                for result in claim.status.allocation.devices.results:
                    self._outdated[PoolId(result.driver, result.pool)] = None
        if new is not None:
            self._holders.put(new)
        elif old is not None:
            self._holders.remove(old)

    def _change_rule(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        if old is not None:
            self._rules.pop(old.key, None)
        if new is not None:
            self._rules[new.key] = new
        self._outdated.update(dict.fromkeys((*self._slices, *self._rows)))

    # --- rows ---

    def refresh(self, at_most: int | None = None) -> int:
        """Compute outdated pools, `at_most` so many; the number that is left."""
        pools = list(self._outdated)[:at_most]
        self.version += bool(pools)
        for pool in pools:
            del self._outdated[pool]
            rows = tuple(self._pool_rows(pool))
            if rows:
                self._rows[pool] = rows
            else:
                self._rows.pop(pool, None)
        return len(self._outdated)

    def _pool_rows(self, pool: PoolId) -> Iterator[DeviceRow]:
        unpublished = dict.fromkeys(self._holders.ledger.taken(pool))
        slices = self._slices.get(pool)
        if slices:
            newest = newest_slices(slices.values())[pool]
            rules = tuple(self._rules.values())
            for counted, row in pool_devices(pool, newest, self._holders, rules):
                unpublished.pop(counted.id.device, None)
                yield row()
        for device in sorted(unpublished):
            yield unpublished_row(DeviceId(*pool, device), self._holders)

    @property
    def pools(self) -> Mapping[PoolId, tuple[DeviceRow, ...]]:
        """The rows by pool, as of the last `refresh`."""
        return self._rows

    def published(self, device: DeviceId) -> Device | None:
        """The device as its newest slice publishes it."""
        pool = PoolId(device.driver, device.pool)
        slices = self._slices.get(pool)
        if not slices:
            return None
        for slice_ in newest_slices(slices.values())[pool]:
            for each in slice_.spec.devices or ():
                if each.name == device.device:
                    return each
        return None


def _pool_of(slice_: ResourceSlice) -> PoolId:
    return PoolId(slice_.spec.driver, slice_.spec.pool.name)
