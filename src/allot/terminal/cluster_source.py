"""The cluster that is shown: one that is followed (`ReconnectingCluster`), or one that does not change."""

from __future__ import annotations

from typing import Any, Final, Protocol

from allot.client import resources
from allot.client.resources import Resource
from allot.questions.live_devices import LiveDevices
from allot.questions.observed_cluster import KINDS, ObservedCluster

SHOWN_KINDS: Final[tuple[Resource[Any], ...]] = (*KINDS, resources.CORE_EVENTS)
"""All that views read."""


class ClusterSource(Protocol):
    """What views read."""

    title: str
    """Which cluster it is."""
    devices: LiveDevices

    @property
    def revision(self) -> int:
        """Another number after each change."""

    @property
    def is_live(self) -> bool:
        """Whether it is followed."""

    @property
    def is_loading(self) -> bool:
        """Whether the first lists are not complete yet."""

    @property
    def failure(self) -> str:
        """Why it is outdated; empty if it is not."""

    def observed(self) -> ObservedCluster:
        """The cluster as it is known now."""

    async def run(self) -> None:
        """Follow the cluster until cancelled."""


class FixedSource:
    """A cluster that does not change."""

    revision = 1
    is_live = False
    is_loading = False
    failure = ""

    def __init__(self, cluster: ObservedCluster, title: str) -> None:
        self.title = title
        self.devices = LiveDevices.of(cluster)
        self._cluster = cluster

    def observed(self) -> ObservedCluster:
        return self._cluster

    async def run(self) -> None:
        return
