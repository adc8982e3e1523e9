"""Garbage collection on a timer: often, and of few objects each time.

The interpreter starts a collection when `allocations - deallocations` passes a threshold. A server whose caches are
full deallocates an old object for every new one, so that the difference hardly grows while hundreds of thousands of
objects become young: the next collection then takes a tenth of a second. Here a timer of the event loop
collects, so that the young objects are those of a fraction of a second. Objects that live longer are
hardly ever part of a cycle (connections drop what they hold), so objects that survived two collections are skipped.

Work on a few large objects makes hundreds of thousands of small ones, which survive one collection and are freed without
another when it ends. As long as there are that many survivors, they are not looked at, and if they stay, never.
Counting a million of them takes a twentieth of a second, so while such work goes on they are estimated by the collections that
the interpreter starts itself. Under load there are many all the time: as long as the youngest of one interval in five say
so, they are counted only before they are given up.
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
THRESHOLDS: Final = (20_000, 1_000_000, 1_000_000)
"""For work that does not yield to the event loop: young objects only. All objects may take a second."""
MAX_OBJECTS: Final = 20_000
"""Looking at so many takes 2 to 10 ms."""
MAX_POSTPONED: Final = 10
"""So many times a collection of more objects than this is postponed."""
MAX_COUNTED: Final = 100_000
"""More are not counted while they are being made."""
MAX_SURVIVORS: Final = 250_000
"""With more the collection is not postponed: they are never looked at."""


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
        young_collections: Callable[[], int] = lambda: gc.get_count()[1],
    ) -> None:
        """`young_collections` says how often the youngest objects were collected since their survivors were."""
        self._loop = loop
        self._collect = collect
        self._count = count
        self._young_collections = young_collections
        self._own_collections = 0
        """How many of the young collections were ours, or were before survivors were frozen."""
        self._automatic = 0
        self._collections = 0
        self._postponed = 0
        self._estimated = 0
        """How many survivors there may be: those last counted, and later as many in each interval as in one of them."""

    def start(self) -> None:
        gc.set_threshold(*THRESHOLDS)
        self._plan()

    def _plan(self) -> None:
        self._loop.call_later(COLLECT_SECONDS, self._run)

    def _run(self) -> None:
        if gc.isenabled():
            self._collections += 1
            if self._collections % YOUNG_COLLECTIONS:
                self._collect_young()
            else:
                self._collect_survivors()
        self._plan()

    def _collect_young(self) -> None:
        self._collect(0)
        self._own_collections += 1

    def _collect_survivors(self) -> None:
        count = self._survivors()
        if count <= MAX_OBJECTS:
            self._collect(1)
            self._forget_survivors()
            return
        self._collect_young()
        self._postponed += 1
        if self._postponed > MAX_POSTPONED or count > MAX_SURVIVORS:
            gc.freeze()
            self._forget_survivors()

    def _survivors(self) -> int:
        """How many objects a collection would look at; roughly if they are being made by the hundred thousand."""
        automatic = self._young_collections() - self._own_collections
        is_growing, self._automatic = automatic > self._automatic, automatic
        made = automatic * THRESHOLDS[0]
        if is_growing and made > MAX_COUNTED:
            return made
        young = self._count(0)
        self._estimated += young * YOUNG_COLLECTIONS
        is_settled = MAX_OBJECTS < self._estimated <= MAX_SURVIVORS
        if not is_settled or self._postponed == MAX_POSTPONED:
            self._estimated = young + self._count(1)
        return self._estimated

    def _forget_survivors(self) -> None:
        self._postponed = self._automatic = self._estimated = 0
        self._own_collections = self._young_collections()
