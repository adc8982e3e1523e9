from __future__ import annotations

import asyncio

from allot.scheduler.framework.concurrency_limit import ConcurrencyLimit, released_slot
from tests.unit.client.fakes import settle


class Line:
    """Tasks that want turns, and what they got to do."""

    def __init__(self, limit: int) -> None:
        self.turns = ConcurrencyLimit(limit)
        self.at_work: set[str] = set()
        self.doors: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def come(self, *names: str, rests: bool = False) -> None:
        for name in names:
            self.doors[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._work(name, rests))

    async def _work(self, name: str, rests: bool) -> None:
        async with self.turns.slot():
            if rests:
                async with released_slot():
                    await self.doors[name].wait()
            self.at_work.add(name)
            if not rests:
                await self.doors[name].wait()
            self.at_work.discard(name)

    async def end(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


def test_concurrency_is_limited() -> None:
    async def story() -> None:
        line = Line(2)
        line.come("a", "b", "c")
        await settle()
        assert line.at_work == {"a", "b"}
        assert line.turns.is_exhausted

        line.doors["a"].set()
        await settle()

        assert line.at_work == {"b", "c"}
        await line.end()

    asyncio.run(story())


def test_a_thousand_that_only_wait_leave_the_turns_to_others() -> None:
    async def story() -> None:
        line = Line(1)
        line.come(*(f"waits-{number}" for number in range(1000)), rests=True)
        await settle()
        line.come("works")
        await settle()

        assert line.at_work == {"works"}
        await line.end()
        assert not line.turns.is_exhausted

    asyncio.run(story())


def test_a_suspended_task_acquires_the_limit_again() -> None:
    async def story() -> None:
        line = Line(1)
        line.come("rests", rests=True)
        await settle()
        line.come("works")
        await settle()
        line.doors["rests"].set()
        await settle()
        assert not line.tasks["rests"].done(), "the other one has the turn"

        line.doors["works"].set()
        await settle()

        assert line.tasks["rests"].done()
        assert not line.turns.is_exhausted

    asyncio.run(story())


def test_a_task_cancelled_while_suspended_releases_once() -> None:
    async def story() -> None:
        line = Line(1)
        line.come("rests", rests=True)
        await settle()
        line.tasks["rests"].cancel()
        await settle()
        line.come("a", "b")
        await settle()

        assert line.at_work == {"a"}
        await line.end()

    asyncio.run(story())


def test_a_task_that_was_started_during_a_turn_has_none_of_its_own() -> None:
    async def story() -> None:
        turns = ConcurrencyLimit(1)

        async def child() -> None:
            async with released_slot():
                assert turns.is_exhausted

        async with turns.slot():
            await asyncio.create_task(child())
            assert turns.is_exhausted

    asyncio.run(story())


def test_waiting_for_a_free_turn_takes_none() -> None:
    async def story() -> None:
        line = Line(1)
        line.come("a")
        await settle()
        waiting = asyncio.create_task(line.turns.wait_for_slot())
        await settle()
        assert not waiting.done()

        line.doors["a"].set()
        await settle()

        assert waiting.done()
        assert not line.turns.is_exhausted

    asyncio.run(story())


def test_a_task_cancelled_when_it_gets_a_turn_leaves_it_to_the_next() -> None:
    async def story() -> None:
        line = Line(1)
        async with line.turns.slot():
            line.come("a", "b")
            await settle()
        line.tasks["a"].cancel()
        await settle()

        assert line.tasks["a"].cancelled()
        assert line.at_work == {"b"}
        await line.end()
        assert line.turns.in_use == 0

    asyncio.run(story())


def test_a_task_cancelled_while_it_waits_is_passed_over() -> None:
    async def story() -> None:
        line = Line(1)
        line.come("a", "b", "c")
        await settle()
        line.tasks["b"].cancel()
        line.doors["a"].set()
        await settle()

        assert line.at_work == {"c"}
        await line.end()
        assert line.turns.in_use == 0

    asyncio.run(story())
