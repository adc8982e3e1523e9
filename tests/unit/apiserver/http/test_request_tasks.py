"""Tasks that answer one request after the other."""

from __future__ import annotations

import asyncio
from typing import Any

from allot.apiserver.dynamic_admission.served_request import REQUEST
from allot.apiserver.http.request_tasks import MAX_IDLE, RequestTasks


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_task_is_used_again_and_keeps_nothing() -> None:
    async def story() -> None:
        tasks, used, requests = RequestTasks(), [], []

        async def work(request: Any) -> None:
            used.append(asyncio.current_task())
            requests.append(REQUEST.get())
            REQUEST.set(request)
            await asyncio.sleep(0)

        for number in range(3):
            tasks.run(work(number))
            assert len(tasks.busy) == 1
            await settle()
            assert not tasks.busy
        tasks.close()
        await settle()
        assert len(set(used)) == 1
        assert requests == [None] * 3

    asyncio.run(story())


def test_a_few_tasks_are_kept() -> None:
    async def story() -> None:
        tasks = RequestTasks()
        for _ in range(3 * MAX_IDLE):
            tasks.run(asyncio.sleep(0))
        assert len(tasks.busy) == 3 * MAX_IDLE
        await settle()
        assert len(asyncio.all_tasks()) == 1 + MAX_IDLE
        tasks.close()
        await settle()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(story())


def test_a_cancelled_task_takes_no_further_request() -> None:
    """Even if the request did not let itself be cancelled, as those of connections."""

    async def story() -> None:
        tasks = RequestTasks()

        async def stubborn() -> None:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                return

        tasks.run(stubborn())
        await settle()
        (task,) = tasks.busy
        task.cancel()
        await settle()
        assert task.done()
        assert not tasks.busy

    asyncio.run(story())
