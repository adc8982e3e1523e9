"""Cooperative multitasking: long work is split into steps, and yields to other tasks between them.

Steps are counted in items, not in seconds, so that the behaviour does not depend on the machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final, TypeVar

from allot.client.steps import Steps

T = TypeVar("T")
R = TypeVar("R")

ITEMS_AT_ONCE: Final = 100
"""Items between two yields, for items of some microseconds."""

CALLS_AT_ONCE: Final = 8
"""Concurrent API requests of a bulk operation."""


async def finish_with_pauses(steps: Steps[T]) -> T:
    """The result; other tasks run wherever the computation yields."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        await asyncio.sleep(0)


async def with_pauses(items: Iterable[T], at_once: int = ITEMS_AT_ONCE) -> AsyncIterator[T]:
    """The items; yields to other tasks after every `at_once` of them."""
    for position, item in enumerate(items, 1):
        yield item
        if not position % at_once:
            await asyncio.sleep(0)


async def few_at_once(
    call: Callable[[T], Awaitable[R]], items: Iterable[T], at_once: int = CALLS_AT_ONCE
) -> list[R | Exception]:
    """The results or exceptions of all calls, in the order of the items; at most `at_once` run concurrently.

    With a server in the same process a call may complete without yielding: with all calls at once, other tasks
    would run only after the last.
    """
    results: dict[int, R | Exception] = {}
    left = enumerate(items)

    async def work() -> None:
        for number, item in left:
            try:
                results[number] = await call(item)
            except Exception as error:  # noqa: BLE001 - the caller's to judge
                results[number] = error
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(work())
    return [results[number] for number in sorted(results)]
