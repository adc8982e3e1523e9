"""The objects of described hardware: nodes, ResourceSlices and DeviceClasses, as `allot up` would publish them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from allot.api.base import replace
from allot.api.core import Node
from allot.api.meta import ObjectMeta
from allot.api.slices import ResourcePool, ResourceSlice
from allot.client import resources
from allot.client.resources import Resource
from allot.driver.hardware import Hardware
from allot.driver.publisher import HARDWARE_LABEL
from allot.driver.slices import slice_name
from allot.kubelet.node_status import missing_labels, status_after
from allot.kubelet.registration import NodeDescription, new_node
from allot.kubelet.settings import KubeletSettings

_STARTED: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SETTINGS: Final = KubeletSettings()


def hardware_objects(hardware: Hardware) -> Iterator[tuple[Resource[Any], Any]]:
    """All of it, each object with its resource."""
    for name, features in hardware.described_nodes():
        yield resources.NODES, _node(hardware.name, NodeDescription(name, *features))
    for key in hardware.sources:
        for index, spec in enumerate(hardware.slices(key)):
            pool = ResourcePool(spec.pool.name, 1, spec.pool.resource_slice_count)
            name = slice_name(key.driver, key.pool, index)
            metadata = ObjectMeta(name=name, uid=f"ResourceSlice/{name}")
            yield (
                resources.RESOURCE_SLICES,
                ResourceSlice(metadata=metadata, spec=replace(spec, pool=pool)),
            )
    for class_ in hardware.classes:
        yield resources.DEVICE_CLASSES, class_


def _node(group: str, description: NodeDescription) -> Node:
    """The node as its simulated kubelet reports it."""
    name = description.name
    description = description._replace(labels={**description.labels, HARDWARE_LABEL: group})
    node = Node({"apiVersion": "v1", "kind": "Node", **new_node(description)})
    node = node.with_value(f"Node/{name}", "metadata", "uid")
    labels = {**node.metadata.labels, **missing_labels(node)}
    node = node.with_value(labels, "metadata", "labels")
    return node.with_value(status_after(node, "", _SETTINGS, _STARTED), "status")
