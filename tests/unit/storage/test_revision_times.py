"""Which revision was the last at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from allot.storage.interface import Put, UnknownTimeError
from allot.storage.revision_times import RevisionTimes
from allot.storage.sqlite import SqliteStore


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_the_last_revision_at_a_time() -> None:
    times = RevisionTimes(10, 100.0)
    times.note(10, 105.0, 0)  # 11 is written
    times.note(11, 120.0, 0)  # 12 is written
    found = {time: times.revision_at(time, 12, 0) for time in (100, 104.9, 105, 119.9, 120, 500)}
    assert found == {100: 10, 104.9: 10, 105: 11, 119.9: 11, 120: 12, 500: 12}


def test_writes_in_the_same_second_share_a_mark() -> None:
    times = RevisionTimes(0, 100.0)
    for number in range(1000):
        times.note(number, 100.0 + number / 100, 0)
    for second in range(1, 10):
        assert 0 <= times.revision_at(100.0 + second, 1000, 0) - second * 100 <= 100


def test_times_before_the_first_are_unknown() -> None:
    times = RevisionTimes(10, 100.0)
    with pytest.raises(UnknownTimeError) as caught:
        times.revision_at(99.0, 10, 0)
    assert caught.value.since == 100.0


def test_times_before_a_compaction_are_unknown() -> None:
    times = RevisionTimes(0, 0.0)
    for number in range(1, 100):
        times.note(number, number * 10.0, oldest=0)
    with pytest.raises(UnknownTimeError) as caught:
        times.revision_at(395.0, 100, 50)
    assert caught.value.since == 500.0
    times.note(100, 2000.0, oldest=50)
    assert times.revision_at(505.0, 101, 50) == 51
    with pytest.raises(UnknownTimeError):
        times.revision_at(395.0, 101, 50)


def test_a_clock_that_is_set_back() -> None:
    times = RevisionTimes(0, 1000.0)
    times.note(5, 2000.0, 0)
    times.note(6, 1500.0, 0)
    assert times.revision_at(1600.0, 7, 0) == 7
    assert times.revision_at(1400.0, 7, 0) == 6


def test_times_outlive_the_process(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = Clock(1_000_000.0)
        path = tmp_path / "a.db"
        expected = {}
        for _ in range(3):
            store = await SqliteStore.open(path, clock=clock, compaction_interval_seconds=0)
            for number in range(5):
                await store.write(Put("key", b"%d" % number))
                expected[clock.now] = await store.revision()
                clock.now += 10
            await store.close()
            clock.now += 100
        store = await SqliteStore.open(path, clock=clock, compaction_interval_seconds=0)
        for time, revision in list(expected.items())[1:]:
            assert await store.revision_at(time + 5) == revision
            assert (await store.list("", revision=revision)).revision == revision
        await store.compact(7)
        for time, revision in expected.items():
            if revision >= 7:
                assert await store.revision_at(time + 5) == revision
            else:
                with pytest.raises(UnknownTimeError):
                    await store.revision_at(time - 5)
        await store.close()

    asyncio.run(scenario())
