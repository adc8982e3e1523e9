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
from allot.api.slices import ResourceSlice
from allot.client.client import Client
from allot.client.discovery import served
from allot.client.errors import ApiStatusError, ClientError
from allot.client.informer import Informer, InformerFactory
from allot.client.options import Scope
from allot.client.resources import DEVICE_CLASSES, NODES, RESOURCE_SLICES, Resource
from allot.driver.hardware import Hardware, PoolKey
from allot.driver.publishing import SliceMarks
from allot.driver.slice_reconciler import (
    DROPPED_FIELDS_RETRY_SECONDS,
    REPAIR_SECONDS,
    SliceReconciler,
    WantedPool,
    owner_reference,
)
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)

HARDWARE_LABEL: Final = "allot.dev/hardware"


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
            await cancel_and_wait(creating, ignore_errors=True)
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
        self._hardware = hardware
        self._nodes = nodes
        self._pools_by_node: dict[str, list[PoolKey]] = {}
        for key, source in hardware.sources.items():
            if source.node is not None:
                self._pools_by_node.setdefault(source.node.name, []).append(key)
        self._reconciler = SliceReconciler(
            client,
            resource,
            slices,
            self._wanted,
            is_own=lambda slice_: slice_.metadata.labels.get(HARDWARE_LABEL) == hardware.name,
            visited=visited,
            repair_seconds=repair_seconds,
        )

    async def run(self) -> None:
        for key in self._hardware.sources:
            self._reconciler.queue.add(key)
        followed = self._nodes.add_handlers(
            on_add=self._follow_node, on_update=lambda _, node: self._follow_node(node)
        )
        try:
            await self._reconciler.run()
        finally:
            self._nodes.remove_handlers(followed)

    def _follow_node(self, node: Node) -> None:
        for key in self._pools_by_node.get(node.metadata.name, ()):
            self._reconciler.queue.add(key)

    def _wanted(self, key: PoolKey) -> WantedPool | None:
        source = self._hardware.sources.get(key)
        marks = SliceMarks({HARDWARE_LABEL: self._hardware.name})
        if source is not None and source.node is not None:
            node = self._nodes.get(ObjectKey("", source.node.name))
            if node is None:  # its slices are deleted with it, and published again with it
                return None
            marks = marks._replace(owner=owner_reference(node))
        return WantedPool(self._hardware.slices(key) if source is not None else (), marks)
