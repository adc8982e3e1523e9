"""What every controller is given, and what it is: a queue of keys and a way to reconcile one.

    informers ──► handlers add keys ──► queue ──► reconcile: read copies, decide, write
                                          ▲           │ failed
                                          └── later ◄─┘

A controller decides from what the API says now, never from what it remembers: it can be killed, started
again, or run twice at once, and the writes (with a resourceVersion or a uid) sort out who was first.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Hashable
from dataclasses import dataclass, field
from typing import ClassVar, Final, Generic, TypeVar

from prometheus_client import CollectorRegistry

from allot.client.client import Client
from allot.client.clock import Clock
from allot.client.events import EventRecorder
from allot.client.informer import InformerFactory
from allot.client.work_queue import FAILURE_BACKOFF, WorkQueue, run_workers
from allot.controllers.queue_metrics import QueueMetrics
from allot.features import DEFAULTS, FeatureGates

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

WORKERS: Final = 8


@dataclass(frozen=True)
class ControllerContext:
    """What all controllers of one manager share."""

    client: Client
    informers: InformerFactory
    recorder: EventRecorder
    gates: FeatureGates = DEFAULTS
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    queue_metrics: QueueMetrics = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "queue_metrics", QueueMetrics(self.registry))

    @property
    def clock(self) -> Clock:
        return self.client.clock


class Controller(ABC):
    """One loop. Made before the informers start (so that it can ask for them), run once they are complete."""

    name: ClassVar[str]
    """As `--controllers` calls it."""

    @abstractmethod
    async def run(self) -> None:
        """Work until cancelled."""


class QueueController(Controller, Generic[K]):
    """A controller that reconciles keys. Handlers call `self.queue.add(key)`."""

    queue_name: ClassVar[str] = ""
    """In metrics; the controller's name by default."""
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
        """Bring one thing in order. If it raises, it is called again later, and later."""

    def background_tasks(self) -> tuple[Coroutine[None, None, None], ...]:
        """What else runs beside the workers, such as something done every minute."""
        return ()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for chore in self.background_tasks():
                group.create_task(chore)
            await run_workers(self.queue, self.reconcile, self.workers)
