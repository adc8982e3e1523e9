"""Garbage collection on a timer: often, and of few objects each time.

The interpreter starts a collection when `allocations - deallocations` passes a threshold. A server whose caches are
full deallocates an old object for every new one, so that the difference hardly grows while hundreds of thousands of
objects become young: the next collection then takes a tenth of a second. Here a timer of the event loop
collects, so that the young objects are those of a fraction of a second. Objects that live longer are
hardly ever part of a cycle (connections drop what they hold), so objects that survived two collections are skipped.
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
THRESHOLDS: Final = (50_000, 2 * YOUNG_COLLECTIONS, 1_000_000)
"""For work that does not yield to the event loop; all objects hardly ever, which may take a second."""


@contextmanager
def loading_modules() -> Iterator[None]:
    """For imports: no collection looks at the objects made in between, neither now nor later.

    Modules live as long as the process. Looking at their objects takes a tenth of the time of their import, and as
    much again on the event loop, when they have become old.
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
        self, loop: asyncio.AbstractEventLoop, collect: Callable[[int], object] = gc.collect
    ) -> None:
        self._loop = loop
        self._collect = collect
        self._collections = 0

    def start(self) -> None:
        gc.set_threshold(*THRESHOLDS)
        self._plan()

    def _plan(self) -> None:
        self._loop.call_later(COLLECT_SECONDS, self._run)

    def _run(self) -> None:
        self._collections += 1
        self._collect(0 if self._collections % YOUNG_COLLECTIONS else 1)
        self._plan()
