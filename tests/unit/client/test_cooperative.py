from __future__ import annotations

import asyncio

from allot.client.cooperative import few_at_once, finish_with_pauses, with_pauses
from allot.client.steps import Steps, finish


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


def test_only_a_few_calls_are_under_way_at_once() -> None:
    async def main() -> None:
        running = most = 0

        async def call(item: int) -> int:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            if item % 10 == 0:
                raise ValueError(item)
            return item

        results = await few_at_once(call, range(100), 4)
        assert most == 4
        assert [result for result in results if isinstance(result, int)] == [
            item for item in range(100) if item % 10
        ]
        assert isinstance(results[50], ValueError)
        assert await few_at_once(call, [], 4) == []

    asyncio.run(main())


def test_calls_that_wait_for_nothing_leave_others_their_turn() -> None:
    async def main() -> None:
        done = 0

        async def call(_: int) -> None:
            nonlocal done
            done += 1

        work = asyncio.create_task(few_at_once(call, range(400), 4))
        assert await turns_beside(work) >= 100
        assert done == 400

    asyncio.run(main())
