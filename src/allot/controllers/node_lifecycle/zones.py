"""Rate limits of evictions by zone.

If many nodes of a zone seem lost, or all nodes of all zones, a network failure of the control plane is more likely:
evictions are slowed down or stopped.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Final, NamedTuple

from allot.api.core import Node

_REGION: Final = "topology.kubernetes.io/region"
_ZONE: Final = "topology.kubernetes.io/zone"
EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
"""Nodes with this label are not counted."""


class EvictionRates(NamedTuple):
    """Nodes per second and zone that are tainted NoExecute."""

    normal: float = 0.1
    disrupted: float = 0.01
    """For a disrupted large zone. In a small one evictions stop."""
    large_zone: int = 50
    """Zones with more nodes than this are large."""
    disrupted_share: float = 0.55
    """A zone is disrupted if this share of its nodes is not ready, and at least three nodes."""


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
    """Nodes of the zone per second, unless all nodes of all zones are lost."""
    if zone_state(count, rates) is not ZoneState.PARTIAL:
        return rates.normal
    return rates.disrupted if count.size > rates.large_zone else 0.0


class Zones:
    """Counts the nodes of each zone."""

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
        """Whether nodes exist and none of them is ready."""
        return bool(self._entries) and not self._ready
