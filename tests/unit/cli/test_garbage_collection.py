import asyncio
import gc
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from allot.cli.components import component_runner
from allot.cli.garbage_collection import (
    COLLECT_SECONDS,
    THRESHOLDS,
    YOUNG_COLLECTIONS,
    PeriodicCollector,
)


@pytest.fixture(autouse=True)
def thresholds_as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


class FakeLoop:
    """Runs what was planned when it is told to."""

    def __init__(self) -> None:
        self.planned: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay: float, callback: Callable[[], None]) -> None:
        self.planned.append((delay, callback))

    def tick(self) -> float:
        delay, callback = self.planned.pop()
        callback()
        return delay


def test_the_youngest_are_collected_often_and_survivors_now_and_then() -> None:
    loop: Any = FakeLoop()
    collected: list[int] = []
    PeriodicCollector(loop, collected.append).start()
    delays = {loop.tick() for _ in range(2 * YOUNG_COLLECTIONS)}
    assert delays == {COLLECT_SECONDS}
    assert collected == 2 * [*[0] * (YOUNG_COLLECTIONS - 1), 1]
    assert gc.get_threshold() == THRESHOLDS


def test_young_objects_do_not_pile_up_when_as_many_old_ones_go() -> None:
    """The interpreter's own count stays small meanwhile, and would not start a collection."""
    loop: Any = FakeLoop()
    collector = PeriodicCollector(loop)
    window: deque[list[object]] = deque([[]] for _ in range(30_000))
    gc.collect()
    collector.start()
    largest = 0
    for _ in range(30):
        for _ in range(1_000):
            window.append([[]])
            window.popleft()
        largest = max(largest, len(gc.get_objects(generation=0)))
        loop.tick()
    assert largest < 10_000


def test_components_collect_periodically() -> None:
    starts: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            starts.append(info["generation"])

    async def wait_for_collections() -> None:
        async with asyncio.timeout(60):
            while not {0, 1} <= set(starts):
                await asyncio.sleep(0.01)

    gc.callbacks.append(note)
    try:
        with component_runner() as runner:
            runner.run(wait_for_collections())
    finally:
        gc.callbacks.remove(note)
