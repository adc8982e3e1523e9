"""Hardware: nodes, their devices, shared devices, and device classes.

A description may have thousands of nodes; devices are expanded lazily, pool by pool.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from allot.api.base import replace
from allot.api.claims import ResourceClaimSpec
from allot.api.classes import DeviceClass
from allot.api.slices import ResourceSliceSpec
from allot.driver.expansion import PoolTemplate, expand_pool
from allot.driver.placeholders import filled
from allot.driver.slices import cut_into_slices, numbered


class HardwareNode(NamedTuple):
    """One node of the description."""

    number: int
    name: str

    @property
    def placeholders(self) -> dict[str, int | str]:
        return {"node": self.number, "nodeName": self.name}


class NodeFeatures(NamedTuple):
    """Labels, taints and capacity of nodes; strings may have placeholders."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: list[dict[str, Any]]
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]


class NodeGroup(NamedTuple):
    """Nodes with the same features."""

    nodes: tuple[HardwareNode, ...]
    features: NodeFeatures


class PoolKey(NamedTuple):
    """A pool in the cluster."""

    driver: str
    pool: str


class PoolSource(NamedTuple):
    """The source of a pool: its template, the template's path, and its node, if it has one."""

    template: PoolTemplate
    place: str
    node: HardwareNode | None


@dataclass(frozen=True)
class Hardware:
    """A validated description."""

    name: str
    groups: tuple[NodeGroup, ...]
    sources: Mapping[PoolKey, PoolSource]
    classes: tuple[DeviceClass, ...]
    description: str = ""
    based_on: tuple[str, ...] = ()
    """The drivers whose published slices have this shape."""
    example_claim: ResourceClaimSpec | None = None

    @cached_property
    def nodes(self) -> tuple[HardwareNode, ...]:
        return tuple(node for group in self.groups for node in group.nodes)

    def described_nodes(self) -> Iterator[tuple[str, NodeFeatures]]:
        """The nodes by name, with their features."""
        for group in self.groups:
            for node in group.nodes:
                features = (filled(part, node.placeholders) for part in group.features)
                yield node.name, NodeFeatures(*features)

    def slices(self, key: PoolKey) -> tuple[ResourceSliceSpec, ...]:
        """The slices of a pool, without a generation."""
        source = self.sources[key]
        return slices_of(source, parts_of(key, source))


def parts_of(key: PoolKey, source: PoolSource) -> tuple[ResourceSliceSpec, ...]:
    """The whole pool as one slice of any size, or as the slices that the description has."""
    node = source.node
    return expand_pool(
        source.template, key.pool, node.name if node else None, node.placeholders if node else {}
    )


def slices_of(
    source: PoolSource, parts: tuple[ResourceSliceSpec, ...]
) -> tuple[ResourceSliceSpec, ...]:
    """The slices that are published."""
    if not source.template.slices:
        return cut_into_slices(parts[0])
    return numbered(
        [
            replace(
                part, shared_counters=part.shared_counters or None, devices=part.devices or None
            )
            for part in parts
        ]
    )
