"""Tasks that are cancelled and awaited, and callers that are cancelled meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from allot.task_cancellation import cancel_and_wait


class _Loop:
    """Runs until it is cancelled; then it needs `released` to end."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.is_ending = asyncio.Event()
        self.has_ended = False

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.is_ending.set()
            while not self.released.is_set():
                try:
                    await self.released.wait()
                except asyncio.CancelledError:
                    continue  # cleaning up goes on
            self.has_ended = True


async def _started(loop: _Loop) -> asyncio.Task[None]:
    task = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    return task


async def _failed(message: str) -> asyncio.Task[None]:
    async def fail() -> None:
        raise ValueError(message)

    task = asyncio.create_task(fail())
    await asyncio.wait((task,))
    return task


def test_it_returns_when_all_tasks_have_ended() -> None:
    async def main() -> None:
        loops = [_Loop(), _Loop()]
        tasks = [await _started(loop) for loop in loops]
        stopping = asyncio.create_task(cancel_and_wait(*tasks))
        for loop in loops:  # both are cancelled before one is awaited
            await loop.is_ending.wait()
        loops[1].released.set()
        await asyncio.wait((tasks[1],))
        assert not stopping.done()
        loops[0].released.set()
        await stopping

        assert [task.cancelled() for task in tasks] == [True, True]

    asyncio.run(main())


def test_tasks_that_were_not_started_or_have_ended() -> None:
    async def main() -> None:
        ended = asyncio.create_task(asyncio.sleep(0))
        await ended
        await cancel_and_wait(None)
        await cancel_and_wait(None, ended)

        assert not ended.cancelled()

    asyncio.run(main())


def test_a_cancellation_of_the_caller_is_raised_after_the_task_has_ended() -> None:
    async def main() -> None:
        loop = _Loop()
        task = await _started(loop)
        stopping = asyncio.create_task(cancel_and_wait(task, ignore_errors=True))
        await loop.is_ending.wait()
        stopping.cancel()
        await asyncio.sleep(0)
        assert not stopping.done()
        loop.released.set()
        with pytest.raises(asyncio.CancelledError):
            await stopping

        assert loop.has_ended
        assert stopping.cancelled()

    asyncio.run(main())


def test_the_first_error_is_raised_after_all_tasks_have_ended() -> None:
    async def main() -> None:
        loop = _Loop()
        loop.released.set()
        task = await _started(loop)
        with pytest.raises(ValueError, match="first"):
            await cancel_and_wait(await _failed("first"), task, await _failed("second"))

        assert loop.has_ended

    asyncio.run(main())


def test_an_error_while_a_task_ends_is_raised() -> None:
    async def fail_at_the_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("the file cannot be closed")

    async def main() -> None:
        task = asyncio.create_task(fail_at_the_end())
        await asyncio.sleep(0)
        with pytest.raises(OSError, match="cannot be closed"):
            await cancel_and_wait(task)

    asyncio.run(main())


def test_errors_are_ignored_on_request() -> None:
    async def main() -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, about: reported.append(about))
        failed = await _failed("ignored")
        await cancel_and_wait(failed, ignore_errors=True)
        del failed

        assert reported == []  # such as "Task exception was never retrieved"

    asyncio.run(main())
