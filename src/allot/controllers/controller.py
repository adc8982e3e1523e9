"""The base classes of controllers, and the context that the controllers of one manager share.

    informers ──► event handlers add keys ──► work queue ──► reconcile: read from listers, decide, write
                                                 ▲               │ error
                                                 └── backoff ◄───┘

A controller decides from the current API objects, never from its own memory. It can be killed and restarted, or
run twice at the same time: preconditions in the writes (resourceVersion, uid) resolve races.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Hashable
from copy import copy
from dataclasses import dataclass, field
from typing import ClassVar, Final, Generic, TypeVar

from prometheus_client import CollectorRegistry

from allot.client.client import Client
from allot.client.clock import Clock
from allot.client.events import Recorder
from allot.client.informer import InformerFactory
from allot.client.work_queue import FAILURE_BACKOFF, WorkQueue, run_workers
from allot.controllers.queue_metrics import QueueMetrics
from allot.features import DEFAULTS, FeatureGates

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

WORKERS: Final = 8


@dataclass(frozen=True)
class ControllerContext:
    """Shared by all controllers of one manager, like kube-controller-manager's ControllerContext."""

    client: Client
    informers: InformerFactory
    recorder: Recorder
    gates: FeatureGates = DEFAULTS
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    queue_metrics: QueueMetrics = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "queue_metrics", QueueMetrics(self.registry))

    @property
    def clock(self) -> Clock:
        return self.client.clock

    def for_controller(self, client: Client, recorder: Recorder) -> ControllerContext:
        """The same, for a controller that has a client and a name in events of its own."""
        own = copy(self)
        object.__setattr__(own, "client", client)
        object.__setattr__(own, "recorder", recorder)
        return own


class Controller(ABC):
    """One control loop. Created before the informers start, so that it can request them; run after they have synced."""

    name: ClassVar[str]
    """The name that `--controllers` takes."""
    event_source: ClassVar[str] = ""
    """The component in its events; its name by default."""

    @abstractmethod
    async def run(self) -> None:
        """Work until cancelled."""


class QueueController(Controller, Generic[K]):
    """A controller that reconciles keys. Event handlers call `self.queue.add(key)`."""

    queue_name: ClassVar[str] = ""
    """The label in metrics; the controller's name by default."""
    workers: ClassVar[int] = WORKERS

    def __init__(self, context: ControllerContext) -> None:
        self.client = context.client
        self.clock = context.clock
        self.queue: WorkQueue[K] = WorkQueue(
            clock=context.clock,
            backoff=FAILURE_BACKOFF,
            observer=context.queue_metrics.of(self.queue_name or self.name),
        )

    @abstractmethod
    async def reconcile(self, key: K) -> None:
        """Reconcile one key. If it raises, the key is queued again with a growing backoff."""

    def background_tasks(self) -> tuple[Coroutine[None, None, None], ...]:
        """Coroutines that run beside the workers, such as a periodic resync."""
        return ()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for task in self.background_tasks():
                group.create_task(task)
            await run_workers(self.queue, self.reconcile, self.workers)
