from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from allot.client.errors import ApiStatusError, ClientError, TransportError
from allot.client.work_queue import QueueObserver, QueueShutDownError, WorkQueue, run_workers
from tests.unit.client.fakes import FakeClock, settle


class Notes(QueueObserver):
    def __init__(self) -> None:
        self.log: list[str] = []

    def added(self) -> None:
        self.log.append("added")

    def retried(self) -> None:
        self.log.append("retried")

    def taken(self, waited_seconds: float) -> None:
        self.log.append(f"taken after {waited_seconds:g}")

    def finished(self, worked_seconds: float) -> None:
        self.log.append(f"finished after {worked_seconds:g}")


def play(scenario: Callable[[WorkQueue[str], FakeClock], Awaitable[None]]) -> list[str]:
    notes = Notes()

    async def main() -> None:
        clock = FakeClock()
        await scenario(WorkQueue(clock=clock, observer=notes), clock)

    asyncio.run(main())
    return notes.log


async def drained(queue: WorkQueue[str]) -> list[str]:
    queue.shut_down()
    found = []
    while True:
        try:
            found.append(await queue.get())
        except QueueShutDownError:
            return found


def test_an_item_is_queued_once() -> None:
    async def scenario(queue: WorkQueue[str], clock: FakeClock) -> None:
        for item in ("a", "b", "a", "a"):
            queue.add(item)
        assert len(queue) == 2
        assert await drained(queue) == ["a", "b"]

    play(scenario)


def test_an_item_that_is_worked_on_waits_until_that_is_done() -> None:
    async def scenario(queue: WorkQueue[str], clock: FakeClock) -> None:
        queue.add("a")
        assert await queue.get() == "a"
        queue.add("a")
        queue.add("a")
        other = asyncio.create_task(queue.get())
        await settle()
        assert not other.done()
        assert len(queue) == 0
        queue.done("a")
        assert await other == "a"
        queue.done("a")
        assert await drained(queue) == []

    play(scenario)


def test_delayed_items_come_when_it_is_time_and_the_earliest_time_counts() -> None:
    async def scenario(queue: WorkQueue[str], clock: FakeClock) -> None:
        queue.add_after("late", 10)
        queue.add_after("soon", 5)
        queue.add_after("soon", 8)
        queue.add_after("late", 7)
        await clock.advance(4.9)
        assert len(queue) == 0
        await clock.advance(0.2)
        assert await queue.get() == "soon"
        queue.done("soon")
        await clock.advance(2)
        assert await queue.get() == "late"
        queue.done("late")
        await clock.advance(60)
        assert len(queue) == 0

    play(scenario)


def test_failures_wait_twice_as_long_each_time() -> None:
    async def scenario(queue: WorkQueue[str], clock: FakeClock) -> None:
        waits = []
        for _ in range(25):
            before = clock.now()
            queue.add_rate_limited("a")
            while not len(queue):
                await clock.advance(max(0.001, (clock.now() - before) * 0.0001))
            waits.append(clock.now() - before)
            await queue.get()
            queue.done("a")
            if len(waits) == 8:
                break
        assert waits == pytest.approx([0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64], abs=0.0021)
        assert queue.failures("a") == 8
        for _ in range(40):
            queue.add_rate_limited("b")
        await clock.advance(0.006)
        assert await queue.get() == "b", "the first of these times"
        queue.done("b")
        queue.add_rate_limited("b")
        await clock.advance(999)
        assert len(queue) == 0
        await clock.advance(2)
        assert await queue.get() == "b"
        queue.forget("b")
        assert queue.failures("b") == 0

    play(scenario)


def test_metrics_hear_of_everything() -> None:
    async def scenario(queue: WorkQueue[str], clock: FakeClock) -> None:
        queue.add("a")
        queue.add("a")
        await clock.advance(3)
        await queue.get()
        await clock.advance(2)
        queue.add_rate_limited("a")
        queue.done("a")

    assert play(scenario) == ["added", "taken after 3", "retried", "finished after 2"]


def test_after_shut_down_nothing_is_taken() -> None:
    async def scenario(queue: WorkQueue[str], clock: FakeClock) -> None:
        waiting = [asyncio.create_task(queue.get()) for _ in range(2)]
        queue.add_after("later", 1)
        await settle()
        queue.shut_down()
        queue.add("a")
        await clock.advance(5)
        for task in waiting:
            with pytest.raises(QueueShutDownError):
                await task

    play(scenario)


def test_a_cancelled_worker_takes_nothing_along() -> None:
    async def scenario(queue: WorkQueue[str], clock: FakeClock) -> None:
        waiting = asyncio.create_task(queue.get())
        await settle()
        queue.add("a")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await drained(queue) == ["a"]

    play(scenario)


def test_failed_keys_are_retried(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(queue: WorkQueue[str], clock: FakeClock) -> None:
        tried: list[str] = []

        async def reconcile(item: str) -> None:
            tried.append(item)
            if len(tried) < 3:
                raise RuntimeError("not yet")

        working = asyncio.create_task(run_workers(queue, reconcile, workers=3))
        queue.add("a")
        await clock.advance(1)
        assert tried == ["a"] * 3
        assert queue.failures("a") == 0
        queue.shut_down()
        await working

    with caplog.at_level(logging.ERROR):
        play(scenario)
    assert caplog.text.count("a failed; retrying") == 2


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (ApiStatusError(409, "Conflict", "the object has been modified"), logging.INFO),
        (ApiStatusError(404, "NotFound", "not found"), logging.INFO),
        (ApiStatusError(403, "Forbidden", "may not"), logging.WARNING),
        (TransportError("cut off", was_sent=True), logging.WARNING),
    ],
)
def test_api_errors_are_logged_without_traceback(
    error: ClientError, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(queue: WorkQueue[str], clock: FakeClock) -> None:
        errors: list[Exception] = [error]

        async def reconcile(_: str) -> None:
            if errors:
                raise errors.pop()

        working = asyncio.create_task(run_workers(queue, reconcile))
        queue.add("a")
        await clock.advance(1)
        queue.shut_down()
        await working

    with caplog.at_level(logging.INFO):
        play(scenario)
    (record,) = caplog.records
    assert (record.levelno, record.exc_info) == (level, None)
    assert record.getMessage() == f"a: {error}; retrying"


def test_an_item_with_a_handicap_waits_for_others_but_not_for_ever() -> None:
    async def main() -> None:
        clock = FakeClock()
        seconds = {"large": 3.0}
        queue: WorkQueue[str] = WorkQueue(clock=clock, handicap=lambda item: seconds.get(item, 0.0))
        queue.add("large")
        queue.add("small-1")
        await clock.advance(2)
        queue.add("small-2")
        await clock.advance(2)
        queue.add("small-3")
        assert await drained(queue) == ["small-1", "small-2", "large", "small-3"]

    asyncio.run(main())


def test_items_with_nothing_to_do_leave_others_their_turn() -> None:
    """Neither the queue nor the reconciles wait for anything."""

    async def main() -> None:
        queue: WorkQueue[int] = WorkQueue(clock=FakeClock())
        turns_at: list[int] = []
        handled = 0

        async def reconcile(_: int) -> None:
            nonlocal handled
            handled += 1

        async def other() -> None:
            while handled < 1000:
                turns_at.append(handled)
                await asyncio.sleep(0)

        for item in range(1000):
            queue.add(item)
        queue.shut_down()
        await asyncio.gather(run_workers(queue, reconcile, workers=20), other())
        gaps = [later - earlier for earlier, later in pairwise(turns_at)]
        assert max(gaps) <= 2

    asyncio.run(main())
