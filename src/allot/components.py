"""The components of a cluster besides the API server: scheduler, controllers, simulated nodes.

Each component has its own client, and communicates only through the API, as if it ran on its own machine. Only what
they watch comes to this process once for all of them. The API server may be in this process, in another one or on
another machine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry

from allot.client.client import Client
from allot.client.clock import Clock, LoopClock
from allot.client.component_users import (
    CONTROLLER_MANAGER,
    DRIVERS,
    NODES,
    SCHEDULER,
    ComponentUser,
    controller_user,
)
from allot.client.shared_informers import SharedInformers
from allot.client.supervision import run_with_restarts, wait_until_ready
from allot.client.wall_clock import wall_clock
from allot.controllers.manager import COMPONENT, ControllerManager, Factory
from allot.controllers.namespace_objects import RootCaPublisher
from allot.controllers.node_lifecycle import NodeLifecycleController
from allot.controllers.node_lifecycle import NodeLifecycleSettings as LifecycleSettings
from allot.controllers.registry import ALL, select_controllers
from allot.driver.hardware import Hardware
from allot.features import FeatureGates
from allot.kubelet.settings import KubeletSettings as NodeSettings
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.configuration import SchedulerConfiguration
from allot.scheduler.framework.deadlines import DecisionLimits
from allot.simulation import SimulatedHardware
from allot.task_cancellation import cancel_and_wait


@dataclass(frozen=True)
class ClusterParts:
    """The components to run beside the API server."""

    scheduler: SchedulerConfiguration | None = field(default_factory=SchedulerConfiguration)
    controllers: Sequence[str] = (ALL,)
    nodes: NodeSettings | None = field(default_factory=NodeSettings)
    hardware: Sequence[Hardware] = ()
    scheduler_gates: FeatureGates | None = None
    """The scheduler's feature gates, if they differ from those of the API server."""
    controller_gates: FeatureGates | None = None
    """The same for the controllers."""


NewClient = Callable[[ComponentUser, str], Client]


class ClusterTime(NamedTuple):
    """The clocks of a cluster. Tests provide their own."""

    clock: Clock
    monotonic: Callable[[], float]
    today: Callable[[], datetime]
    limits: DecisionLimits | None = None
    """The scheduler's time limits. None in virtual time, where only step budgets apply."""


class Part(NamedTuple):
    """One component: its main loop, and whether it is ready."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]
    is_ready: Callable[[], bool]


DECISION_SECONDS: Final = 5.0
"""The limit of one scheduling decision. Shorter than that of a separate scheduler: users wait interactively."""
REAL_TIME: Final = ClusterTime(
    LoopClock(), time.monotonic, wall_clock, DecisionLimits(DECISION_SECONDS)
)


class Components:
    """Runs the components of a cluster besides the API server."""

    def __init__(
        self,
        new_client: NewClient,
        parts: ClusterParts,
        gates: FeatureGates,
        times: ClusterTime = REAL_TIME,
        *,
        root_certificates: str = "",
        shares_informers: bool = True,
    ) -> None:
        """`new_client` creates the client of a component from its user and user agent.

        `root_certificates` are the CA certificates that are published for pods. Shared informers list and watch as the
        controller manager, whose role allows all that components read; otherwise each component does it by itself.
        """
        self._new_client = new_client
        self._time = times
        self._informers = (
            SharedInformers(new_client(CONTROLLER_MANAGER, COMPONENT)) if shares_informers else None
        )
        self._root_certificates = root_certificates
        self.parts: list[Part] = []
        self.registries: dict[str, Callable[[], CollectorRegistry]] = {}
        """The metrics registry of each component."""
        self._nodes: SimulatedHardware | None = None
        self._add_parts(parts, gates)
        self._tasks: list[asyncio.Task[None]] = []

    def _add_parts(self, parts: ClusterParts, gates: FeatureGates) -> None:
        if parts.scheduler is not None:
            scheduler = RestartingScheduler(
                self._new_client(SCHEDULER, "allot-scheduler"),
                parts.scheduler,
                gates if parts.scheduler_gates is None else parts.scheduler_gates,
                self._time,
                self._informers,
            )
            self.parts.append(Part("scheduler", scheduler.run, lambda: scheduler.is_ready))
            self.registries["scheduler"] = lambda: scheduler.registry
        if factories := select_controllers(parts.controllers, self._own_controllers()):
            client = self._new_client(CONTROLLER_MANAGER, COMPONENT)
            own_gates = gates if parts.controller_gates is None else parts.controller_gates
            manager = ControllerManager(
                client, factories, own_gates, self._controller_client, self._informers
            )
            self.parts.append(Part("controllers", manager.run, lambda: manager.is_ready))
            self.registries["controllers"] = lambda: manager.registry
        if parts.nodes is not None:
            client = self._new_client(NODES, "allot-nodes")
            drivers = self._new_client(DRIVERS, "allot-driver")
            nodes = SimulatedHardware(client, parts.nodes, parts.hardware, drivers, self._informers)
            self._nodes = nodes
            self.parts.append(Part("nodes", nodes.run, lambda: nodes.is_ready))
            self.registries["nodes"] = lambda: nodes.registry

    def problem_of(self, part: str) -> str:
        """Why a part is not ready; empty if it is."""
        found = next((each for each in self.parts if each.name == part), None)
        if found is None:
            return f"{part}: not a part of this cluster"
        return "" if found.is_ready() else f"{part}: not ready"

    def _controller_client(self, controller: str) -> Client:
        return self._new_client(controller_user(controller), f"{COMPONENT}/{controller}")

    def _own_controllers(self) -> dict[str, Factory]:
        """Factories that differ in a cluster of simulated nodes."""
        lifecycle = partial(
            NodeLifecycleController,
            # Nodes that users create have no kubelet that renews a Lease.
            settings=LifecycleSettings(monitors_without_lease=False),
        )
        publisher = partial(RootCaPublisher, certificates=self._root_certificates)
        return {NodeLifecycleController.name: lifecycle, RootCaPublisher.name: publisher}

    async def start(self) -> None:
        """Returns when all components are ready. Raises `ForeignNodeError` if a node's name is taken."""
        if self._nodes is not None:
            await self._nodes.create_nodes()
        self._tasks = [
            asyncio.create_task(
                run_with_restarts(part.name, part.run, self._time.clock), name=part.name
            )
            for part in self.parts
        ]
        await wait_until_ready(lambda: all(part.is_ready() for part in self.parts))

    async def stop(self) -> None:
        await cancel_and_wait(*self._tasks, ignore_errors=True)
        if self._informers is not None:
            await self._informers.stop()


class RestartingScheduler:
    """A scheduler that starts with empty state whenever it is run."""

    def __init__(
        self,
        client: Client,
        configuration: SchedulerConfiguration,
        gates: FeatureGates,
        times: ClusterTime,
        informers: SharedInformers | None,
    ) -> None:
        """Raises `ConfigurationError`."""
        self._make = partial(
            SchedulerProcess,
            client,
            configuration,
            gates,
            clock=times.monotonic,
            today=times.today,
            limits=times.limits,
            sources=informers,
        )
        self._process = self._make()
        self._has_run = False

    @property
    def is_ready(self) -> bool:
        return self._process.informers.has_synced

    @property
    def registry(self) -> CollectorRegistry:
        """The metrics of the current run."""
        return self._process.metrics.registry

    async def run(self) -> None:
        if self._has_run:
            self._process = self._make()
        self._has_run = True
        await self._process.run()
