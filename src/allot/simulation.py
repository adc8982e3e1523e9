"""Simulated nodes and their devices: the kubelets and drivers of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from allot.client.client import Client
from allot.client.informer import Sources
from allot.driver.hardware import Hardware
from allot.driver.publisher import HARDWARE_LABEL, SlicePublisher
from allot.kubelet.dra.nodes import SimulatedHardwareDrivers
from allot.kubelet.registration import NodeDescription, register
from allot.kubelet.settings import KubeletSettings
from allot.kubelet.simulated_nodes import NodeSimulation


class SimulatedHardware:
    """Runs the simulated kubelets of all nodes, and publishes the devices of hardware descriptions."""

    def __init__(
        self,
        client: Client,
        settings: KubeletSettings,
        described: Sequence[Hardware] = (),
        drivers: Client | None = None,
        sources: Sources | None = None,
    ) -> None:
        """`drivers` is the client that publishes devices, if it is not the one that runs nodes.

        `sources` are informers that other components of this process use as well.
        """
        self._client = client
        self._described = described
        names = frozenset(key.driver for hardware in described for key in hardware.sources)
        simulated = SimulatedHardwareDrivers(names, HARDWARE_LABEL)
        self._nodes = NodeSimulation(client, settings, simulated, sources)
        self._publishers = [SlicePublisher(drivers or client, hardware) for hardware in described]

    @property
    def is_ready(self) -> bool:
        """Whether nodes are simulated and all described devices have been published once."""
        return self._nodes.is_ready and all(each.is_complete for each in self._publishers)

    @property
    def registry(self) -> CollectorRegistry:
        """The metrics of all nodes together."""
        return self._nodes.metrics.registry

    async def create_nodes(self) -> None:
        """Create the described nodes. Raises `ForeignNodeError` if a name is taken."""
        for hardware in self._described:
            nodes = [NodeDescription(name, *rest) for name, rest in hardware.described_nodes()]
            await register(self._client, nodes, (HARDWARE_LABEL, hardware.name))

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._nodes.run())
            for publisher in self._publishers:
                group.create_task(publisher.run())
