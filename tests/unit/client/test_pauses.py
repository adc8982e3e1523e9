from __future__ import annotations

import asyncio

from allot.client.pauses import Steps, finish, finish_with_pauses, with_pauses


def counting(limit: int) -> Steps[int]:
    for _ in range(limit):
        yield
    return limit


async def turns_beside(work: asyncio.Task[object]) -> int:
    turns = 0
    while not work.done():
        turns += 1
        await asyncio.sleep(0)
    return turns


def test_steps_have_one_result_with_and_without_pauses() -> None:
    assert finish(counting(5)) == 5
    assert asyncio.run(finish_with_pauses(counting(5))) == 5


def test_others_get_a_turn_at_every_step() -> None:
    async def main() -> None:
        work: asyncio.Task[object] = asyncio.create_task(finish_with_pauses(counting(20)))
        assert await turns_beside(work) >= 20

    asyncio.run(main())


def test_others_get_a_turn_after_so_many_items() -> None:
    async def main() -> None:
        async def read() -> object:
            return [item async for item in with_pauses(range(1000), 50)]

        work = asyncio.create_task(read())
        assert await turns_beside(work) >= 20
        assert work.result() == list(range(1000))

    asyncio.run(main())
