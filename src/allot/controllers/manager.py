"""The controller manager: runs the selected controllers on one client and one set of informers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, cast

from prometheus_client import CollectorRegistry

from allot.client.client import Client
from allot.client.event_recorder import EventRecorder
from allot.client.informer import InformerFactory, Sources
from allot.client.resources import CORE_EVENTS
from allot.client.supervision import run_with_restarts
from allot.controllers.controller import Controller, ControllerContext
from allot.exposition import show_gates
from allot.features import DEFAULTS, FeatureGates

COMPONENT: Final = "allot-controller-manager"

Factory = Callable[[ControllerContext], Controller]


class ControllerManager:
    """Runs controllers until cancelled. Can be run again, such as after losing and regaining the lease."""

    def __init__(
        self,
        client: Client,
        factories: Sequence[Factory],
        gates: FeatureGates = DEFAULTS,
        controller_client: Callable[[str], Client] | None = None,
        sources: Sources | None = None,
    ) -> None:
        """`controller_client` gives a controller a client of its own, by its name; without it all use `client`.

        Informers and events are the manager's in any case. `sources` are informers that other components of this
        process use as well.
        """
        self.client = client
        self._controller_client = controller_client
        self.registry = CollectorRegistry()
        """The metrics of the current run."""
        self._factories = factories
        self._gates = gates
        self._sources = sources
        self._informers: InformerFactory | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the controllers are running."""
        return self._informers is not None and self._informers.has_synced

    @property
    def is_starting(self) -> bool:
        """Whether the informers are syncing. False while waiting for leader election."""
        return self._informers is not None and not self._informers.has_synced

    async def run(self) -> None:
        """Sync the informers, then run all controllers."""
        informers = InformerFactory(self.client, sources=self._sources)
        recorder = EventRecorder(self.client, COMPONENT, "", resource=CORE_EVENTS)
        context = ControllerContext(self.client, informers, recorder, self._gates)
        show_gates(self._gates, context.registry)
        controllers = [make(self._own_context(context, recorder, make)) for make in self._factories]
        self._informers, self.registry = informers, context.registry
        informers.start()
        recorder.start()
        try:
            await informers.wait_synced()
            await _run_all(controllers, context)
        finally:
            self._informers = None
            await recorder.stop()
            await informers.stop()

    def _own_context(
        self, context: ControllerContext, recorder: EventRecorder, make: Factory
    ) -> ControllerContext:
        """What is given to one controller."""
        cls = cast("type[Controller]", make.func if isinstance(make, partial) else make)
        name = getattr(cls, "name", COMPONENT)
        client = self._controller_client(name) if self._controller_client else self.client
        source = getattr(cls, "event_source", "") or name
        return context.for_controller(client, recorder.for_component(source))


async def _run_all(controllers: Iterable[Controller], context: ControllerContext) -> None:
    async with asyncio.TaskGroup() as group:
        for controller in controllers:
            group.create_task(
                run_with_restarts(controller.name, controller.run, context.clock),
                name=controller.name,
            )
        # The manager keeps running when all controllers return, such as those whose gate is off.
        await asyncio.Event().wait()
