"""Creates the Node objects of a description, and deletes those that it no longer has."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from allot.api.core import Node
from allot.api.identities import ObjectKey
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.options import DeleteOptions, Scope
from allot.client.resources import NODES
from allot.kubelet.node_status import default_labels
from allot.kubelet.settings import SIMULATED_LABEL

log = logging.getLogger(__name__)

AT_ONCE: Final = 16


class NodeDescription(NamedTuple):
    """A node to create."""

    name: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    taints: Sequence[Mapping[str, Any]] = ()
    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}


class ForeignNodeError(Exception):
    """A node of that name exists, but is not simulated."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"node {name} already exists and is not simulated "
            f"(it has no label {SIMULATED_LABEL}=true); choose another name"
        )


def new_node(description: NodeDescription) -> dict[str, Any]:
    labels = {
        **default_labels(description.name),
        **description.labels,
        SIMULATED_LABEL: "true",
    }
    node: dict[str, Any] = {"metadata": {"name": description.name, "labels": labels}}
    if description.annotations:
        node["metadata"]["annotations"] = dict(description.annotations)
    if description.taints:
        node["spec"] = {"taints": [dict(taint) for taint in description.taints]}
    status = _amounts(description)
    if status:
        node["status"] = status
    return node


def needed_change(node: Node, description: NodeDescription) -> dict[str, Any] | None:
    """A merge patch for an existing node; None if it is as described. Additional fields stay."""
    metadata = {}
    for field, wanted, known in (
        ("labels", description.labels, node.metadata.labels),
        ("annotations", description.annotations, node.metadata.annotations),
    ):
        changed = {name: value for name, value in wanted.items() if known.get(name) != value}
        if changed:
            metadata[field] = changed
    return {"metadata": metadata} if metadata else None


def needed_amounts(node: Node, description: NodeDescription) -> dict[str, Any] | None:
    """A merge patch for the status of an existing node; None if it is as described."""
    patch = {}
    for field, wanted in _amounts(description).items():
        known = node.get("status", field, default={})
        changed = {name: value for name, value in wanted.items() if known.get(name) != value}
        if changed:
            patch[field] = changed
    return {"status": patch} if patch else None


def _amounts(description: NodeDescription) -> dict[str, Any]:
    if not description.capacity and not description.allocatable:
        return {}
    capacity = dict(description.capacity) or dict(description.allocatable)
    return {"capacity": capacity, "allocatable": {**capacity, **description.allocatable}}


async def register(
    client: Client, descriptions: Iterable[NodeDescription], group_label: tuple[str, str]
) -> None:
    """Create and update the described nodes. Other nodes of the same group are deleted.

    Taints are only set on new nodes: later they belong to the administrator.
    """
    name, value = group_label
    wanted = {
        description.name: description._replace(labels={**description.labels, name: value})
        for description in descriptions
    }
    limit = asyncio.Semaphore(AT_ONCE)

    async def ensure(description: NodeDescription) -> None:
        async with limit:
            await _ensure(client, description)

    selector = f"{SIMULATED_LABEL}=true,{name}={value}"
    for node in (await client.list(NODES, Scope(label_selector=selector))).items:
        if node.metadata.name not in wanted:
            log.warning("node %s: no longer in the description, deleting", node.metadata.name)
            await _delete(client, node)
    ended = await asyncio.gather(*map(ensure, wanted.values()), return_exceptions=True)
    for error in ended:
        if error is not None:
            raise error


async def _ensure(client: Client, description: NodeDescription) -> None:
    key = ObjectKey("", description.name)
    node = await client.find(NODES, key)
    if node is None:
        try:
            node = await client.create(NODES, Node(new_node(description)))
        except ApiStatusError as error:
            if not error.is_already_exists:
                raise
            node = await client.get(NODES, key)
    if node.metadata.labels.get(SIMULATED_LABEL) != "true":
        raise ForeignNodeError(description.name)
    if change := needed_change(node, description):
        await client.patch(NODES, key, change)
    if amounts := needed_amounts(node, description):
        await client.patch(NODES, key, amounts, subresource="status")


async def _delete(client: Client, node: Node) -> None:
    try:
        await client.delete(NODES, node.key, DeleteOptions(uid=node.metadata.uid))
    except ApiStatusError as error:
        if not (error.is_not_found or error.is_conflict):
            raise
