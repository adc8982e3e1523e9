"""Garbage collection on a timer: often, and of few objects each time.

The interpreter starts a collection when `allocations - deallocations` passes a threshold. A server whose caches are
full deallocates an old object for every new one, so that the difference hardly grows while hundreds of thousands of
objects become young: the next collection then takes a tenth of a second. Here a timer of the event loop
collects, so that the young objects are those of a fraction of a second. Objects that live longer are
hardly ever part of a cycle (connections drop what they hold), so objects that survived two collections are skipped.

Work on a few large objects makes hundreds of thousands of small ones, which survive one collection and are freed without
another when it ends. As long as there are that many survivors, they are not looked at, and if they stay, never.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

COLLECT_SECONDS: Final = 0.1
YOUNG_COLLECTIONS: Final = 5
"""So many collections of the youngest objects, then one that includes what survived them."""
THRESHOLDS: Final = (50_000, 1_000_000, 1_000_000)
"""For work that does not yield to the event loop: young objects only. All objects may take a second."""
MAX_OBJECTS: Final = 50_000
"""Looking at so many takes about 10 ms."""
MAX_POSTPONED: Final = 10
"""So many times a collection of more objects than this is postponed."""


@contextmanager
def long_lived_objects() -> Iterator[None]:
    """For imports and first lists: no collection looks at the objects made in between, neither now nor later.

    Modules live as long as the process, and objects of informers until they are replaced, without being parts of
    cycles. Looking at them takes a tenth of the time of their making, and as much again on the event loop, when they
    have become old.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class PeriodicCollector:
    """Collects young garbage on an event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        collect: Callable[[int], object] = gc.collect,
        count: Callable[[int], int] = lambda generation: len(gc.get_objects(generation)),
    ) -> None:
        self._loop = loop
        self._collect = collect
        self._count = count
        self._collections = 0
        self._postponed = 0

    def start(self) -> None:
        gc.set_threshold(*THRESHOLDS)
        self._plan()

    def _plan(self) -> None:
        self._loop.call_later(COLLECT_SECONDS, self._run)

    def _run(self) -> None:
        if gc.isenabled():
            self._collections += 1
            if self._collections % YOUNG_COLLECTIONS:
                self._collect(0)
            else:
                self._collect_survivors()
        self._plan()

    def _collect_survivors(self) -> None:
        count = self._count(0) + self._count(1)
        if count <= MAX_OBJECTS:
            self._collect(1)
            self._postponed = 0
            return
        self._collect(0)
        self._postponed += 1
        if self._postponed > MAX_POSTPONED or count > MAX_POSTPONED * MAX_OBJECTS:
            gc.freeze()
            self._postponed = 0
