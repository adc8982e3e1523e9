"""Heartbeats of simulated nodes: status and leases; also labels and outdated taints.

A lease is one write per node every ten seconds, spread over that period, without a read.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from allot.api.core import Node
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.errors import ApiStatusError, ClientError
from allot.client.informer import Informer
from allot.client.resources import LEASES, NODES
from allot.client.work_queue import WorkQueue, run_workers
from allot.kubelet.addresses import NODE_NETWORK, pick_address
from allot.kubelet.node_status import (
    LEASE_NAMESPACE,
    address_of,
    fraction,
    heartbeat_age,
    is_offline,
    lease_spec,
    missing_labels,
    new_lease,
    status_after,
    taints_to_keep,
)
from allot.kubelet.settings import KubeletSettings

log = logging.getLogger(__name__)

WORKERS: Final = 8
MIN_WRITE_INTERVAL_SECONDS: Final = 1.0
"""Minimum interval between status writes of a node, also if another client writes its status."""
CONFLICT_SECONDS: Final = 0.1
_BY_ADDRESS: Final = "address"


class NodeLoop:
    """Simulates the nodes of an informer."""

    def __init__(self, client: Client, nodes: Informer[Node], settings: KubeletSettings) -> None:
        self._client = client
        self._clock = client.clock
        self._nodes = nodes
        self._settings = settings
        self._statuses: WorkQueue[str] = WorkQueue(clock=client.clock)
        self._leases: WorkQueue[str] = WorkQueue(clock=client.clock)
        self._renewed: set[str] = set()
        self._written_at: dict[str, float] = {}
        nodes.add_index(_BY_ADDRESS, _addresses)
        nodes.add_handlers(
            on_add=lambda node: self._statuses.add(node.metadata.name),
            on_update=lambda _, node: self._statuses.add(node.metadata.name),
            on_delete=lambda node: self._forget(node.metadata.name),
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run_workers(self._statuses, self._reconcile, WORKERS))
            group.create_task(run_workers(self._leases, self._renew, WORKERS))

    def _forget(self, name: str) -> None:
        self._renewed.discard(name)
        self._written_at.pop(name, None)

    def _node(self, name: str) -> Node | None:
        node = self._nodes.get(ObjectKey("", name))
        return None if node is None or is_offline(node) else node

    # --- status ---

    async def _reconcile(self, name: str) -> None:
        node = self._node(name)
        if node is None:
            return
        if (
            name not in self._renewed
        ):  # the lease first: a status without a heartbeat is not trusted
            self._renewed.add(name)
            await self._write_lease(node)
            # Spread the renewals of nodes over the period.
            self._leases.add_after(name, self._settings.renew_seconds * (0.5 + fraction(name) / 2))
        wait = self._written_at.get(name, -1e9) + MIN_WRITE_INTERVAL_SECONDS - self._clock.now()
        reported = self._with_status(node)
        if reported is not node and wait > 0:
            self._statuses.add_after(name, wait)
            return
        try:
            if reported is not node:
                self._written_at[name] = self._clock.now()
                # Controllers write to a new node at the same time: retry with what they wrote.
                node = await self._client.update_with_retry(
                    NODES, node.key, self._with_status, subresource="status", start=node
                )
            await self._tidy(node)
        except ApiStatusError as error:
            if error.is_conflict:
                self._statuses.add_after(name, CONFLICT_SECONDS)
            elif not error.is_not_found:
                raise

    def _with_status(self, node: Node) -> Node:
        status = status_after(node, self._address(node), self._settings, self._clock.today())
        return node if status is None else node.with_value(status, "status")

    async def _tidy(self, node: Node) -> None:
        """Update labels and taints; with the resourceVersion as a precondition."""
        metadata: dict[str, object] = {"resourceVersion": node.metadata.resource_version}
        patch: dict[str, object] = {"metadata": metadata}
        labels, taints = missing_labels(node), taints_to_keep(node)
        if labels:
            metadata["labels"] = labels
        if taints is not None:
            patch["spec"] = {"taints": taints or None}
        if labels or taints is not None:
            await self._client.patch(NODES, ObjectKey("", node.metadata.name), patch)

    def _address(self, node: Node) -> str:
        known = address_of(node)
        name = node.metadata.name
        return known or pick_address(name, NODE_NETWORK, lambda address: self._has(address, name))

    def _has(self, address: str, name: str) -> bool:
        """Whether another node has the address."""
        found = self._nodes.by_index(_BY_ADDRESS, address)
        return any(node.metadata.name != name for node in found)

    # --- leases ---

    async def _renew(self, name: str) -> None:
        if self._nodes.get(ObjectKey("", name)) is None:
            return  # the node is deleted, and with it its lease
        node = self._node(name)
        if node is not None:
            await self._write_lease(node)
            if heartbeat_age(node, self._clock.today()) >= self._settings.heartbeat_seconds / 2:
                self._statuses.add(name)
        self._leases.add_after(name, self._settings.renew_seconds)

    async def _write_lease(self, node: Node) -> None:
        key = ObjectKey(LEASE_NAMESPACE, node.metadata.name)
        now = self._clock.today()
        patch = {"spec": lease_spec(key.name, self._settings, now)}
        try:
            try:
                await self._client.patch(LEASES, key, patch)
            except ApiStatusError as error:
                if not error.is_not_found:
                    raise
                await self._client.create(LEASES, RawObject(new_lease(node, self._settings, now)))
        except ClientError as error:  # the next renewal is due soon
            log.info("node %s: lease not renewed: %s", key.name, error)


def _addresses(node: Node) -> tuple[str, ...]:
    address = address_of(node)
    return (address,) if address else ()
