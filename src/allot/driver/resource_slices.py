"""Publishes the ResourceSlices of one driver, and keeps them up to date: what drivers hand over with `update`.

    DriverResources: pools by name ──► checks ──► slice_reconciler, pool by pool ──► the API server
                                         └─ problems ──► on_error

A controller with a node publishes the node's own pools, which the Node owns; one without a node publishes pools that
several nodes use. One that is bound to a pool publishes that pool, and reads and changes no other. On exit slices stay: the kubelet deletes those of a driver that does not come back.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from allot.api.core import Node
from allot.api.identities import ObjectKey
from allot.api.meta import NodeSelector
from allot.api.slices import CounterSet, Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from allot.client.client import Client
from allot.client.discovery import served
from allot.client.informer import Informer
from allot.client.options import Scope
from allot.client.resources import NODES, RESOURCE_SLICES
from allot.driver.hardware import PoolKey
from allot.driver.publisher import NoSlicesServedError
from allot.driver.publishing import SliceMarks
from allot.driver.slice_reconciler import (
    REPAIR_SECONDS,
    SliceReconciler,
    WantedPool,
    log_problem,
    owner_reference,
)
from allot.driver.slices import cut_into_slices

NODE_POLL_SECONDS: Final = 1.0


class InvalidPoolError(ValueError):
    """A pool that cannot be published. It is not retried until the next update."""


@dataclass(frozen=True)
class Pool:
    """The devices of a pool, in the order of preference. They are cut into slices by the API's limits."""

    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    """What partitions of devices share (KEP-4815)."""
    node_selector: NodeSelector | None = None
    """For pools that several nodes use: exactly one of this and the next two."""
    all_nodes: bool = False
    per_device_node_selection: bool = False
    generation: int = 0
    """At least this generation; 0: the controller counts."""
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()

    @property
    def is_shared(self) -> bool:
        """Whether the pool says itself which nodes use it."""
        return bool(self.node_selector or self.all_nodes or self.per_device_node_selection)

    def problems(self) -> Iterator[str]:
        """What the API server cannot see in a single slice."""
        yield from _duplicates("device", (device.name for device in self.devices))
        yield from _duplicates("counter set", (each.name for each in self.shared_counters))
        known = {each.name: each.counters for each in self.shared_counters}
        for device in self.devices:
            for consumed in device.consumes_counters:
                if consumed.counter_set not in known:
                    yield f"device {device.name} consumes counter set {consumed.counter_set}, which the pool does not have"
                    continue
                for counter in sorted(consumed.counters.keys() - known[consumed.counter_set]):
                    yield f"device {device.name} consumes counter {counter}, which counter set {consumed.counter_set} does not have"

    def spec(self, driver: str, name: str, node: str | None) -> ResourceSliceSpec:
        """The pool as one slice of any size."""
        return ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name),
            node_name=node,
            node_selector=self.node_selector,
            all_nodes=self.all_nodes or None,
            per_device_node_selection=self.per_device_node_selection or None,
            partition_type_attribute=self.partition_type_attribute,
            skip_node_operations=self.skip_node_operations,
            shared_counters=self.shared_counters,
            devices=self.devices,
        )


def _duplicates(what: str, names: Iterator[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"duplicate {what} {name}"


@dataclass(frozen=True)
class DriverResources:
    """Everything that a driver publishes, by the name of the pool."""

    pools: Mapping[str, Pool] = field(default_factory=dict)


class ResourceSliceController:
    """Publishes what `update` was given last, until `run` is cancelled."""

    def __init__(
        self,
        client: Client,
        driver: str,
        node_name: str | None = None,
        *,
        pool_name: str | None = None,
        on_error: Callable[[Exception], None] = log_problem,
        repair_seconds: float = REPAIR_SECONDS,
    ) -> None:
        """`pool_name` binds the controller to one pool, which nodes share; with a node, that Node owns its slices.

        `on_error` gets InvalidPoolError, DroppedFieldsError and RejectedPoolError; other errors are retried.
        """
        self._client = client
        self._driver = driver
        self._node_name = node_name
        self._pool_name = pool_name
        self._on_error = on_error
        self._repair_seconds = repair_seconds
        self._resources: DriverResources | None = None
        self._invalid: dict[str, Pool] = {}
        self._unpublished: set[PoolKey] = set()
        self._reconciler: SliceReconciler | None = None
        self._node: Node | None = None
        self._changed = asyncio.Event()

    @property
    def is_published(self) -> bool:
        """Whether every pool of the last update has been written, or was rejected."""
        return self._resources is not None and not self._unpublished

    def update(self, resources: DriverResources) -> None:
        """Publish these pools, and delete the slices of all others."""
        before = self._resources.pools if self._resources is not None else {}
        self._resources = resources
        self._invalid = {}
        for name, pool in resources.pools.items():
            problems = [*pool.problems(), *self._misplaced(name, pool)]
            if problems:
                self._invalid[name] = pool
                self._on_error(
                    InvalidPoolError(f"pool {name} of {self._driver}: {'; '.join(problems)}")
                )
        changed = {
            name
            for name in before.keys() | resources.pools.keys()
            if before.get(name) != resources.pools.get(name)
        }
        for name in changed:
            key = PoolKey(self._driver, name)
            self._unpublished.add(key)
            if self._reconciler is not None:
                self._reconciler.queue.add(key)
        self._changed.set()

    @property
    def _slice_node_name(self) -> str | None:
        """The node that alone can use the slices."""
        return self._node_name if self._pool_name is None else None

    def _misplaced(self, name: str, pool: Pool) -> Iterator[str]:
        if self._pool_name not in (None, name):
            yield f"the controller is bound to pool {self._pool_name}"
        if self._slice_node_name is not None and pool.is_shared:
            yield "it is for several nodes; publish it with a controller that has no node"
        if self._slice_node_name is None and not pool.is_shared:
            yield "it needs a node selection: node_selector, all_nodes or per_device_node_selection"

    async def run(self) -> None:
        """Publish until cancelled. Nothing is written before the first update."""
        resource = await served(self._client, RESOURCE_SLICES)
        if resource is None:
            raise NoSlicesServedError
        if self._node_name is not None:
            self._node = await self._existing_node(self._node_name)
        await self._changed.wait()
        fields = f"spec.driver={self._driver},"
        if self._pool_name is not None:
            fields += f"spec.pool.name={self._pool_name}"
        else:
            fields += f"spec.nodeName={self._node_name or ''}"
        slices = Informer(self._client, resource, Scope(field_selector=fields))
        reconciler = SliceReconciler(
            self._client,
            resource,
            slices,
            self._wanted,
            is_own=self._is_own,
            visited=self._unpublished.discard,
            on_error=self._on_error,
            repair_seconds=self._repair_seconds,
        )
        slices.start()
        try:
            await slices.wait_synced()
            for key in tuple(self._unpublished):
                reconciler.queue.add(key)
            self._reconciler = reconciler
            await reconciler.run(workers=1)
        finally:
            self._reconciler = None
            await slices.stop()

    async def _existing_node(self, name: str) -> Node:
        """The node, once it exists: it owns the slices."""
        while True:
            node = await self._client.find(NODES, ObjectKey("", name))
            if node is not None:
                return node
            await self._client.clock.sleep(NODE_POLL_SECONDS)

    def _is_own(self, slice_: ResourceSlice) -> bool:
        spec = slice_.spec
        if self._pool_name is not None:
            return (spec.driver, spec.pool.name) == (self._driver, self._pool_name)
        return (spec.driver, spec.node_name) == (self._driver, self._node_name)

    def _wanted(self, key: PoolKey) -> WantedPool | None:
        if self._resources is None or key.pool in self._invalid:
            return None
        marks = SliceMarks({})
        if self._node is not None:
            marks = SliceMarks({}, owner_reference(self._node))
        pool = self._resources.pools.get(key.pool)
        if pool is None:
            return WantedPool((), marks)
        spec = pool.spec(self._driver, key.pool, self._slice_node_name)
        return WantedPool(cut_into_slices(spec), marks, pool.generation)
