"""The assembly of all simulated nodes of a cluster."""

from __future__ import annotations

import asyncio
from typing import Final

from allot.client.client import Client
from allot.client.discovery import served
from allot.client.event_recorder import EventLimits, EventRecorder
from allot.client.informer import InformerFactory, Sources
from allot.client.options import Scope
from allot.client.resources import CORE_EVENTS, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from allot.kubelet.dra.metrics import DraMetrics
from allot.kubelet.dra.nodes import DraNodes, SimulatedHardwareDrivers
from allot.kubelet.metrics import KubeletMetrics
from allot.kubelet.node_loop import NodeLoop
from allot.kubelet.pod_loop import PodLoop
from allot.kubelet.settings import KubeletSettings

COMPONENT: Final = "kubelet"
EVENT_LIMITS: Final = EventLimits(writes_per_second=25.0, writes_at_once=200)
"""For all simulated nodes: the events of many pods that start at once must not delay their statuses."""
BOUND: Final = Scope(field_selector="spec.nodeName!=")


class NodeSimulation:
    """Simulates nodes until cancelled. Can be run again."""

    def __init__(
        self,
        client: Client,
        settings: KubeletSettings = KubeletSettings(),  # noqa: B008 - a value
        hardware: SimulatedHardwareDrivers = SimulatedHardwareDrivers(),  # noqa: B008 - a value
        sources: Sources | None = None,
    ) -> None:
        """`sources` are informers that other components of this process use as well."""
        self._client = client
        self._settings = settings
        self._hardware = hardware
        self._sources = sources
        self._informers: InformerFactory | None = None
        self.metrics = KubeletMetrics()
        self._dra_metrics = DraMetrics(self.metrics.registry)

    @property
    def is_ready(self) -> bool:
        return self._informers is not None and self._informers.has_synced

    async def run(self) -> None:
        client, settings = self._client, self._settings
        informers = InformerFactory(client, sources=self._sources)
        recorder = EventRecorder(client, COMPONENT, "", EVENT_LIMITS, CORE_EVENTS)
        nodes = informers.informer(NODES, Scope(label_selector=settings.node_selector))
        pods = informers.informer(PODS, BOUND)
        claims = informers.informer(await served(client, RESOURCE_CLAIMS) or RESOURCE_CLAIMS)
        node_loop = NodeLoop(client, nodes, settings)
        resources = DraNodes(
            client,
            nodes,
            pods,
            claims,
            await served(client, RESOURCE_SLICES) or RESOURCE_SLICES,
            recorder,
            settings,
            self._dra_metrics,
            self._hardware,
        )
        pod_loop = PodLoop(client, nodes, pods, claims, recorder, settings, self.metrics, resources)
        informers.start()
        recorder.start()
        self._informers = informers
        try:
            await informers.wait_synced()
            async with asyncio.TaskGroup() as group:
                group.create_task(node_loop.run())
                group.create_task(pod_loop.run())
                group.create_task(resources.run())
        finally:
            await recorder.stop()
            await informers.stop()
