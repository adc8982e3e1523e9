"""Turns: one at a time, in order, also when some give up."""

from __future__ import annotations

import asyncio

from allot.apiserver.registry.turns import Turns


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_one_at_a_time_and_in_order() -> None:
    async def run() -> list[str]:
        turns, seen = Turns(), list[str]()

        async def work(name: str) -> None:
            await turns.take("key")
            seen.append(f"{name} begins")
            await asyncio.sleep(0)
            seen.append(f"{name} ends")
            turns.leave("key")

        await asyncio.gather(*(work(name) for name in "abc"))
        return seen

    assert asyncio.run(run()) == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]


def test_a_free_turn_is_taken_without_waiting() -> None:
    async def run() -> None:
        turns = Turns()
        assert turns.take_free("a")
        assert not turns.take_free("a")
        assert turns.take_free("b")
        waiting = asyncio.create_task(turns.take("a"))
        await settle()
        assert not waiting.done()
        turns.leave("a")
        assert not turns.take_free("a"), "it is for the one who waits"
        await waiting
        turns.leave("a")
        assert turns.take_free("a")

    asyncio.run(run())


def test_other_keys_do_not_wait() -> None:
    async def run() -> None:
        turns = Turns()
        await turns.take("a")
        await asyncio.wait_for(turns.take("b"), 1)

    asyncio.run(run())


def test_a_task_that_gives_up_while_it_waits_is_passed_over() -> None:
    async def run() -> None:
        turns = Turns()
        await turns.take("key")
        first, second = (asyncio.create_task(turns.take("key")) for _ in range(2))
        await settle()
        first.cancel()
        await settle()
        turns.leave("key")
        await asyncio.wait_for(second, 1)
        turns.leave("key")
        assert not turns._waiting

    asyncio.run(run())


def test_a_task_that_gives_up_when_its_turn_comes_lets_the_next_one_have_it() -> None:
    async def run() -> None:
        turns = Turns()
        await turns.take("key")
        first, second = (asyncio.create_task(turns.take("key")) for _ in range(2))
        await settle()
        turns.leave("key")
        first.cancel()  # in the same iteration: it has the turn, and does not know yet
        await asyncio.wait_for(second, 1)
        assert first.cancelled()

    asyncio.run(run())
