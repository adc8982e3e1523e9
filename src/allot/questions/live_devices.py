"""The rows of `devices`, kept up to date: after a change only the pools that it concerns are computed again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from allot.allocation.devices import PoolId
from allot.api.identities import DeviceId
from allot.api.slices import Device, ResourceSlice
from allot.client.resources import Resource
from allot.features import FeatureGates
from allot.questions.devices import DeviceRow
from allot.questions.live_pools import POOL_KINDS, LivePools
from allot.questions.observed_cluster import ObservedCluster


class LiveDevices:
    """Every device of a cluster with its state, by pool."""

    def __init__(self, gates: FeatureGates) -> None:
        self.version = 0
        """Grows when rows are computed."""
        self._live = LivePools(gates)
        self._rows: dict[PoolId, tuple[DeviceRow, ...]] = {}

    @classmethod
    def of(cls, cluster: ObservedCluster) -> LiveDevices:
        """The devices of a cluster that does not change."""
        found = cls(cluster.gates)
        for resource in POOL_KINDS:
            for obj in cluster.objects.of(resource):
                found.change(resource, None, obj)
        return found

    def change(self, resource: Resource[Any], old: Any, new: Any) -> None:
        """Take a change of an object; None: it did not or does not exist. Other kinds are ignored."""
        self._live.change(resource, old, new)

    def refresh(self, at_most: int | None = None) -> int:
        """Compute outdated pools, `at_most` so many; the number that is left."""
        pools = self._live.take_outdated(at_most)
        self.version += bool(pools)
        for pool in pools:
            rows = tuple(self._pool_rows(pool))
            if rows:
                self._rows[pool] = rows
            else:
                self._rows.pop(pool, None)
        return self._live.outdated

    def _pool_rows(self, pool: PoolId) -> Iterator[DeviceRow]:
        published: set[str] = set()
        devices = self._live.devices(pool)
        if devices is not None:
            for counted in devices.counted:
                published.add(counted.device.name)
                yield devices.row(counted)
        yield from self._live.unpublished_rows(pool, published)

    @property
    def pools(self) -> Mapping[PoolId, tuple[DeviceRow, ...]]:
        """The rows by pool, as of the last `refresh`."""
        return self._rows

    def published(self, device: DeviceId) -> tuple[ResourceSlice, Device] | None:
        """The device and its slice; None if it is not published."""
        return self._live.published(device)
