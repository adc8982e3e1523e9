"""The DynamicResources plugin with nodes of one device each, claims, and no scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceClass
from allot.api.identities import DeviceId
from allot.api.slices import ResourceSlice
from allot.client.client import Client
from allot.features import DEFAULTS, FeatureGates
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.handle import Handle, NoPodEvents
from allot.scheduler.framework.status import Status
from allot.scheduler.plugins.dynamic_resources.claim_writes import ClaimWriter
from allot.scheduler.plugins.dynamic_resources.filter_results import (
    DynamicResourcesArgs,
    PodDevices,
)
from allot.scheduler.plugins.dynamic_resources.plugin import DynamicResources
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.device_state import DeviceState
from allot.scheduler.state.nodes import NodeFacts
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import (
    DRIVER,
    a_class,
    a_slice,
)
from tests.unit.client.fakes import ScriptedTransport
from tests.unit.scheduler.state.objects import a_cluster, a_node_facts

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAME = DynamicResources.name


class RecordedEvents(NoPodEvents):
    """Keeps warnings."""

    def __init__(self, warnings: list[tuple[str, str]]) -> None:
        self._warnings = warnings

    def warn(self, pod: PodInfo, reason: str, note: str) -> None:
        self._warnings.append((reason, note))


class Bench:
    """The plugin with nodes of one device each, and claims."""

    def __init__(
        self,
        *claims: ResourceClaim,
        nodes: Iterable[NodeFacts] = (a_node_facts("node-1"), a_node_facts("node-2")),
        slices: Sequence[ResourceSlice] | None = None,
        classes: Iterable[DeviceClass] | None = None,
        gates: FeatureGates = DEFAULTS,
        client: Client | None = None,
        args: DynamicResourcesArgs = DynamicResourcesArgs(),  # noqa: B008 - immutable
    ) -> None:
        self.cluster = a_cluster(nodes)
        self.tracker = ClaimTracker(gates)
        self.devices = DeviceState(gates, self.cluster.touch)
        self.tracker.add_ledger_listener(self.devices.allocation_changed)
        if slices is None:
            slices = [a_slice(name=node.name, node=node.name) for node in self.cluster.nodes]
        for slice_ in slices:
            self.devices.put_slice(slice_)
        for class_ in [a_class(DRIVER)] if classes is None else classes:
            self.devices.put_class(class_)
        for claim in claims:
            self.tracker.put(claim)
        self.tasks: list[asyncio.Task[None]] = []
        self.warnings: list[tuple[str, str]] = []
        client = client or Client(ScriptedTransport())
        handle = Handle(
            gates,
            self.cluster,
            self.tracker,
            self.devices,
            utc_now=lambda: NOW,
            events=RecordedEvents(self.warnings),
            spawn=lambda work: self.tasks.append(asyncio.create_task(work)),
        )
        self.plugin = DynamicResources(
            handle,
            ClaimWriter(client, self.tracker.get),
            args,
            new_share_id=iter(f"share-{number}" for number in range(100)).__next__,
        )
        self.state = CycleState()

    def pre_filter(self, pod: PodInfo) -> Status:
        return self.plugin.pre_filter(self.state, pod, self.cluster).status

    def filter(self, pod: PodInfo) -> dict[str, Status]:
        """What it says about every node, after pre_filter."""
        assert self.pre_filter(pod).is_success
        return {node.name: self.plugin.filter(self.state, pod, node) for node in self.cluster.nodes}

    def messages(self, pod: PodInfo) -> dict[str, str]:
        return {name: status.message for name, status in self.filter(pod).items()}

    def reserve(self, pod: PodInfo, node: str = "node-1") -> Status:
        self.filter(pod)
        return self.plugin.reserve(self.state, pod, node)

    def taken(self, node: str = "node-1", device: str = "gpu-0") -> bool:
        return self.tracker.ledger.is_dedicated(DeviceId(DRIVER, node, device))

    @property
    def known(self) -> PodDevices:
        devices: PodDevices = self.state[NAME]
        return devices

    async def finish(self) -> None:
        await asyncio.gather(*self.tasks)
