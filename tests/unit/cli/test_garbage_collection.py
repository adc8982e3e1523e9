import asyncio
import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from allot.cli.components import component_runner
from allot.cli.garbage_collection import (
    COLLECT_SECONDS,
    MAX_COUNTED,
    MAX_OBJECTS,
    MAX_POSTPONED,
    MAX_SURVIVORS,
    THRESHOLDS,
    YOUNG_COLLECTIONS,
    PeriodicCollector,
    long_lived_objects,
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
    collector = PeriodicCollector(
        loop, collected.append, lambda generation: generation * MAX_OBJECTS, lambda: 0
    )
    collector.start()
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


@pytest.mark.parametrize(
    ("survivors", "rounds"),
    [
        pytest.param(MAX_OBJECTS + 1, MAX_POSTPONED + 1, id="they-stay"),
        pytest.param(MAX_SURVIVORS + 1, 1, id="far-too-many"),
    ],
)
def test_many_survivors_are_never_looked_at(survivors: int, rounds: int) -> None:
    loop: Any = FakeLoop()
    collected: list[int] = []
    count = survivors
    PeriodicCollector(
        loop, collected.append, lambda generation: generation * count, lambda: 0
    ).start()
    frozen = gc.get_freeze_count()
    try:
        for _ in range(rounds * YOUNG_COLLECTIONS - 1):
            loop.tick()
        assert gc.get_freeze_count() == frozen
        loop.tick()
        assert gc.get_freeze_count() > frozen
        assert set(collected) == {0}
        count = 0
        for _ in range(YOUNG_COLLECTIONS):
            loop.tick()
        assert collected[-1] == 1
    finally:
        gc.unfreeze()


def test_survivors_are_looked_at_when_most_are_gone() -> None:
    loop: Any = FakeLoop()
    collected: list[int] = []
    count = MAX_OBJECTS + 1
    PeriodicCollector(
        loop, collected.append, lambda generation: generation * count, lambda: 0
    ).start()
    frozen = gc.get_freeze_count()
    for _ in range(MAX_POSTPONED * YOUNG_COLLECTIONS):
        loop.tick()
    count = 10
    for _ in range(YOUNG_COLLECTIONS):
        loop.tick()
    assert gc.get_freeze_count() == frozen
    assert collected[-1] == 1


def test_survivors_are_not_counted_while_very_many_are_made() -> None:
    """Counting a million objects is a long stretch itself."""
    loop: Any = FakeLoop()
    collected: list[int] = []
    counted: list[int] = []
    young = 0

    def count(generation: int) -> int:
        counted.append(generation)
        return 0

    PeriodicCollector(loop, collected.append, count, lambda: young).start()
    frozen = gc.get_freeze_count()

    def next_look(made: int) -> None:
        nonlocal young
        for _ in range(YOUNG_COLLECTIONS):
            loop.tick()
        young += made // THRESHOLDS[0] + collected.count(0)
        collected.clear()

    try:
        next_look(2 * MAX_COUNTED)
        assert counted == [0, 1]
        counted.clear()
        next_look(0)
        assert counted == []
        assert gc.get_freeze_count() == frozen
        next_look(2 * MAX_SURVIVORS)  # no more have been made: they can be counted, and are gone
        assert counted == [0, 1]
        counted.clear()
        next_look(0)
        assert counted == []
        assert gc.get_freeze_count() > frozen
    finally:
        gc.unfreeze()


@pytest.mark.parametrize(
    ("young", "old", "looks"),
    [
        pytest.param(MAX_OBJECTS // 10, 0, [], id="few-are-counted-each-time"),
        pytest.param(MAX_OBJECTS // 4, MAX_OBJECTS, range(MAX_POSTPONED), id="until-given-up"),
        pytest.param(MAX_SURVIVORS // 20, MAX_SURVIVORS // 4, [0, 1, 2, 3, 5, 6, 8, 9], id="again"),
        pytest.param(MAX_SURVIVORS // 4, MAX_SURVIVORS, [], id="counted-at-once"),
    ],
)
def test_survivors_are_not_counted_while_samples_say_that_they_are_many(
    young: int, old: int, looks: Iterable[int]
) -> None:
    """`looks` are those without a count of all survivors."""
    loop: Any = FakeLoop()
    counted: list[list[int]] = []

    def count(generation: int) -> int:
        if generation == 0:
            counted.append([])
        counted[-1].append(generation)
        return (young, old)[generation]

    PeriodicCollector(loop, lambda _: None, count, lambda: 0).start()
    frozen = gc.get_freeze_count()
    try:
        while len(counted) <= MAX_POSTPONED and gc.get_freeze_count() == frozen:
            loop.tick()
    finally:
        gc.unfreeze()
    assert [look for look, counts in enumerate(counted) if counts == [0]] == [*looks]


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


def test_long_lived_objects_are_never_looked_at() -> None:
    loop: Any = FakeLoop()
    collected: list[int] = []
    PeriodicCollector(loop, collected.append, young_collections=lambda: 0).start()
    frozen = gc.get_freeze_count()
    try:
        with long_lived_objects():
            kept = [[number] for number in range(1_000)]
            loop.tick()
            assert not collected
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count() >= frozen + len(kept)
        loop.tick()
        assert collected == [0]
    finally:
        gc.unfreeze()
