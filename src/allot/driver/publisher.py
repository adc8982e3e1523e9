"""The control loop that publishes ResourceSlices: creates, repairs and deletes them.

Only slices with this hardware's label are managed. Pools of a node are published when the node exists, and owned by it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from allot.api.classes import DeviceClass
from allot.api.core import Node
from allot.api.identities import ObjectKey
from allot.api.meta import OwnerReference
from allot.api.slices import ResourceSlice
from allot.client.client import Client
from allot.client.discovery import served
from allot.client.errors import ApiStatusError, ClientError
from allot.client.informer import Informer, InformerFactory
from allot.client.options import DeleteOptions, Scope
from allot.client.resources import DEVICE_CLASSES, NODES, RESOURCE_SLICES, Resource
from allot.client.retries import Backoff
from allot.client.work_queue import WorkQueue, run_workers
from allot.driver.hardware import Hardware, PoolKey
from allot.driver.publishing import SliceMarks, SliceWrites, dropped_fields, plan_pool

log = logging.getLogger(__name__)

HARDWARE_LABEL: Final = "allot.dev/hardware"
WORKERS: Final = 8
REPAIR_SECONDS: Final = 30.0
"""Delay before changes by other clients are reverted."""
DROPPED_FIELDS_RETRY_SECONDS: Final = 60.0
"""How often fields and classes that the server dropped or rejected are retried: its feature gates may have changed."""
CONFLICT_SECONDS: Final = 0.2
FAILURES: Final = Backoff(first_seconds=0.2, most_seconds=60.0, jitter=0.0)
_BY_POOL: Final = "pool"


class NoSlicesServedError(Exception):
    """The server does not serve ResourceSlices."""

    def __init__(self) -> None:
        super().__init__("the API server does not serve resourceslices.resource.k8s.io")


class SlicePublisher:
    """Publishes one hardware description until cancelled. Can be run again."""

    def __init__(
        self, client: Client, hardware: Hardware, *, repair_seconds: float = REPAIR_SECONDS
    ) -> None:
        self._client = client
        self._hardware = hardware
        self._repair_seconds = repair_seconds
        self._unvisited = set(hardware.sources)

    @property
    def is_complete(self) -> bool:
        """Whether every pool has been reconciled once."""
        return not self._unvisited

    async def run(self) -> None:
        resource = await served(self._client, RESOURCE_SLICES)
        if resource is None:
            raise NoSlicesServedError
        informers = InformerFactory(self._client)
        label = f"{HARDWARE_LABEL}={self._hardware.name}"
        publication = _Publication(
            self._client,
            self._hardware,
            resource,
            informers.informer(resource, Scope(label_selector=label)),
            informers.informer(NODES, Scope(label_selector=label)),
            self._repair_seconds,
            self._unvisited.discard,
        )
        refused = await self._create_classes(self._hardware.classes, logging.ERROR)
        creating = asyncio.create_task(self._create_later(refused))
        informers.start()
        try:
            await informers.wait_synced()
            await publication.run()
        finally:
            creating.cancel()
            await asyncio.gather(creating, return_exceptions=True)
            await informers.stop()

    async def _create_classes(
        self, classes: Iterable[DeviceClass], log_level: int
    ) -> list[DeviceClass]:
        """Create the classes; those that the server rejects. Existing classes are not changed."""
        refused: list[DeviceClass] = []
        resource = await served(self._client, DEVICE_CLASSES)
        if resource is None:
            return refused
        for device_class in classes:
            try:
                await self._client.create(resource, device_class)
            except ApiStatusError as error:
                if error.is_already_exists:
                    continue
                if not error.is_invalid:
                    raise
                key = ObjectKey("", device_class.metadata.name)
                if await self._client.find(resource, key) is None:  # it does not exist either
                    log.log(
                        log_level, "%s: device class not created: %s", self._hardware.name, error
                    )
                    refused.append(device_class)
        return refused

    async def _create_later(self, classes: list[DeviceClass]) -> None:
        """Retry until all classes exist: an expression may need a feature that is disabled."""
        while classes:
            await self._client.clock.sleep(DROPPED_FIELDS_RETRY_SECONDS)
            with suppress(ClientError):  # retried in the next round
                classes = await self._create_classes(classes, logging.DEBUG)


class _Publication:
    """One run of a publisher."""

    def __init__(
        self,
        client: Client,
        hardware: Hardware,
        resource: Resource[ResourceSlice],
        slices: Informer[ResourceSlice],
        nodes: Informer[Node],
        repair_seconds: float,
        visited: Callable[[PoolKey], None],
    ) -> None:
        self._client = client
        self._hardware = hardware
        self._visited = visited
        self._resource = resource
        self._slices = slices
        self._nodes = nodes
        self._repair_seconds = repair_seconds
        self._queue: WorkQueue[PoolKey] = WorkQueue(clock=client.clock, backoff=FAILURES)
        self._pools_by_node: dict[str, list[PoolKey]] = {}
        self._unkept: dict[PoolKey, dict[str, str]] = {}
        """resourceVersions of slices from which the server dropped fields: not written again while unchanged."""
        for key, source in hardware.sources.items():
            if source.node is not None:
                self._pools_by_node.setdefault(source.node.name, []).append(key)
        slices.add_index(_BY_POOL, lambda slice_: (_index_value(_pool_key(slice_)),))

    async def run(self) -> None:
        for key in (*self._hardware.sources, *map(_pool_key, self._slices.list())):
            self._queue.add(key)
        followed = self._slices.add_handlers(
            on_add=self._repair,
            on_update=lambda _, slice_: self._repair(slice_),
            on_delete=self._repair,
        )
        nodes_followed = self._nodes.add_handlers(
            on_add=self._follow_node, on_update=lambda _, node: self._follow_node(node)
        )
        try:
            await run_workers(self._queue, self._visit, WORKERS)
        finally:
            self._slices.remove_handlers(followed)
            self._nodes.remove_handlers(nodes_followed)

    def _repair(self, slice_: ResourceSlice) -> None:
        self._queue.add_after(_pool_key(slice_), self._repair_seconds)

    def _follow_node(self, node: Node) -> None:
        for key in self._pools_by_node.get(node.metadata.name, ()):
            self._queue.add(key)

    async def _visit(self, key: PoolKey) -> None:
        await self._reconcile(key)
        self._visited(key)

    async def _reconcile(self, key: PoolKey) -> None:
        source = self._hardware.sources.get(key)
        existing = self._slices.by_index(_BY_POOL, _index_value(key))
        marks = SliceMarks({HARDWARE_LABEL: self._hardware.name})
        if source is not None and source.node is not None:
            node = self._nodes.get(ObjectKey("", source.node.name))
            if node is None:  # its slices are deleted with it, and published again with it
                return
            marks = marks._replace(owner=_owner(node))
        wanted = self._hardware.slices(key) if source is not None else ()
        plan = plan_pool(existing, wanted, marks)
        versions = _versions(existing)
        if plan.is_empty:
            return
        try:
            if versions == self._unkept.get(key) and not await self._would_be_kept(plan):
                self._queue.add_after(key, DROPPED_FIELDS_RETRY_SECONDS)
                return
            written = await self._carry_out(plan)
        except ApiStatusError as error:
            await self._explain(key, plan, error)
            return
        self._note_unkept(key, versions, written)

    async def _would_be_kept(self, plan: SliceWrites) -> bool:
        """Whether the server would store all fields now, by a dry run."""
        answers = [
            *[(s, await self._client.update(self._resource, s, dry_run=True)) for s in plan.update],
            *[(s, await self._client.create(self._resource, s, dry_run=True)) for s in plan.create],
        ]
        return not any(dropped_fields(sent, stored) for sent, stored in answers)

    async def _carry_out(self, plan: SliceWrites) -> list[tuple[ResourceSlice, ResourceSlice]]:
        """The slices as sent and as stored."""
        for slice_ in plan.delete:
            await self._delete(slice_)
        return [
            *[(sent, await self._client.update(self._resource, sent)) for sent in plan.update],
            *[(sent, await self._client.create(self._resource, sent)) for sent in plan.create],
        ]

    async def _delete(self, slice_: ResourceSlice) -> None:
        metadata = slice_.metadata
        options = DeleteOptions(uid=metadata.uid, resource_version=metadata.resource_version)
        try:
            await self._client.delete(self._resource, ObjectKey("", metadata.name), options)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise

    async def _explain(self, key: PoolKey, plan: SliceWrites, error: ApiStatusError) -> None:
        """Handle an error of a write; unknown errors are retried with a backoff."""
        if error.is_invalid:
            log.error("pool %s of %s is not published: %s", key.pool, key.driver, error)
        elif error.is_already_exists:
            await self._meet_others(key, plan)
        elif error.is_conflict or error.is_not_found:
            self._queue.add_after(
                key, CONFLICT_SECONDS
            )  # the informer normally has the change by then
        else:
            raise error

    async def _meet_others(self, key: PoolKey, plan: SliceWrites) -> None:
        """A slice of that name exists: created by another instance, or by another driver."""
        for slice_ in plan.create:
            found = await self._client.find(self._resource, ObjectKey("", slice_.metadata.name))
            label = found.metadata.labels.get(HARDWARE_LABEL) if found is not None else None
            if found is not None and label != self._hardware.name:
                log.warning(
                    "resource slice %s already exists and has another owner", slice_.metadata.name
                )
                self._queue.add_after(key, self._repair_seconds)
                return
        self._queue.add_after(key, CONFLICT_SECONDS)

    def _note_unkept(
        self,
        key: PoolKey,
        versions: dict[str, str],
        written: list[tuple[ResourceSlice, ResourceSlice]],
    ) -> None:
        self._unkept.pop(key, None)
        dropped = sorted({field for pair in written for field in dropped_fields(*pair)})
        if dropped:
            log.warning(
                "pool %s of %s: the server drops %s; is a feature gate disabled?",
                key.pool,
                key.driver,
                ", ".join(dropped),
            )
            self._unkept[key] = versions | _versions(stored for _, stored in written)
            self._queue.add_after(key, DROPPED_FIELDS_RETRY_SECONDS)


def _versions(slices: Iterable[ResourceSlice]) -> dict[str, str]:
    return {slice_.metadata.name: slice_.metadata.resource_version for slice_ in slices}


def _pool_key(slice_: ResourceSlice) -> PoolKey:
    return PoolKey(slice_.spec.driver, slice_.spec.pool.name)


def _index_value(key: PoolKey) -> str:
    return f"{key.driver} {key.pool}"


def _owner(node: Node) -> OwnerReference:
    metadata = node.metadata
    return OwnerReference("v1", "Node", metadata.name, metadata.uid, controller=True)
