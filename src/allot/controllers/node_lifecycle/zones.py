"""How many nodes may be given up at once.

If many nodes of a zone seem lost, or all nodes of all zones, it is more likely that it is us who cannot see
them: then pods are taken away slowly, or not at all.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Final, NamedTuple

from allot.api.core import Node

_REGION: Final = "topology.kubernetes.io/region"
_ZONE: Final = "topology.kubernetes.io/zone"
EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
"""Nodes with this label do not count."""


class EvictionRates(NamedTuple):
    """Nodes per second and zone whose pods are sent away."""

    normal: float = 0.1
    disrupted: float = 0.01
    """For a large zone of which much is lost. A small one is left alone."""
    large_zone: int = 50
    """A zone with more nodes is large."""
    disrupted_share: float = 0.55
    """A zone of which that much is lost, but at least three nodes, is disrupted."""


class ZoneState(Enum):
    NORMAL = "most nodes are ready"
    PARTIAL = "many nodes are not"
    FULL = "no node is ready"


class ZoneCount(NamedTuple):
    """The nodes of a zone."""

    ready: int = 0
    unready: int = 0

    @property
    def size(self) -> int:
        return self.ready + self.unready


def zone_of(node: Node) -> str:
    labels = node.metadata.labels
    region, zone = labels.get(_REGION, ""), labels.get(_ZONE, "")
    return f"{region}::{zone}" if region or zone else ""


def zone_state(count: ZoneCount, rates: EvictionRates) -> ZoneState:
    if not count.ready and count.unready:
        return ZoneState.FULL
    if count.unready > 2 and count.unready >= rates.disrupted_share * count.size:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


def eviction_rate(count: ZoneCount, rates: EvictionRates) -> float:
    """How many nodes of the zone may be given up per second, as long as not everything is lost."""
    if zone_state(count, rates) is not ZoneState.PARTIAL:
        return rates.normal
    return rates.disrupted if count.size > rates.large_zone else 0.0


class Zones:
    """Counts nodes as they come, change and go."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[str, bool]] = {}
        self._counts: Counter[tuple[str, bool]] = Counter()
        self._ready = 0

    def put(self, node: Node, *, ready: bool) -> None:
        name = node.metadata.name
        self.drop(name)
        if EXCLUDED not in node.metadata.labels:
            entry = zone_of(node), ready
            self._entries[name] = entry
            self._counts[entry] += 1
            self._ready += ready

    def drop(self, name: str) -> None:
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._counts[entry] -= 1
            self._ready -= entry[1]

    def count(self, zone: str) -> ZoneCount:
        return ZoneCount(self._counts[zone, True], self._counts[zone, False])

    def are_all_lost(self) -> bool:
        """Whether there are nodes, and none of them is ready."""
        return bool(self._entries) and not self._ready
