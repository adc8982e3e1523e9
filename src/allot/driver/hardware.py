"""Hardware: nodes, their devices, shared devices, and device classes.

A description may have thousands of nodes; devices are expanded lazily, pool by pool.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from allot.api.classes import DeviceClass
from allot.api.slices import ResourceSliceSpec
from allot.driver.expansion import PoolTemplate, expand_pool
from allot.driver.placeholders import filled
from allot.driver.slices import cut_into_slices


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
    nodes: tuple[HardwareNode, ...]
    features: NodeFeatures
    sources: Mapping[PoolKey, PoolSource]
    classes: tuple[DeviceClass, ...]
    description: str = ""

    def described_nodes(self) -> Iterator[tuple[str, NodeFeatures]]:
        """The nodes by name, with their features."""
        for node in self.nodes:
            yield (
                node.name,
                NodeFeatures(*(filled(part, node.placeholders) for part in self.features)),
            )

    def slices(self, key: PoolKey) -> tuple[ResourceSliceSpec, ...]:
        """The slices of a pool, without a generation."""
        return cut_into_slices(pool_of(key, self.sources[key]))


def pool_of(key: PoolKey, source: PoolSource) -> ResourceSliceSpec:
    """The whole pool as one slice of any size."""
    node = source.node
    return expand_pool(
        source.template, key.pool, node.name if node else None, node.placeholders if node else {}
    )
