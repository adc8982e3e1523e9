"""Work that shares the event loop: done in pieces, with the others' turn between them.

Pieces are counted in items, not in seconds, so that what happens is the same on every machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

ITEMS_AT_ONCE: Final = 100
"""Items between two pauses, where each takes some microseconds."""

CALLS_AT_ONCE: Final = 8
"""Calls of the API server that are under way at the same time, where there are many to make."""

Steps = Generator[None, None, T]
"""A computation that yields wherever it can be interrupted, and returns its result."""


def finish(steps: Steps[T]) -> T:
    """The result, computed without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


async def finish_with_pauses(steps: Steps[T]) -> T:
    """The result; the other tasks get their turn wherever the computation yields."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        await asyncio.sleep(0)


async def with_pauses(items: Iterable[T], at_once: int = ITEMS_AT_ONCE) -> AsyncIterator[T]:
    """The items; after so many of them the other tasks get their turn."""
    for position, item in enumerate(items, 1):
        yield item
        if not position % at_once:
            await asyncio.sleep(0)


async def few_at_once(
    call: Callable[[T], Awaitable[R]], items: Iterable[T], at_once: int = CALLS_AT_ONCE
) -> list[R | Exception]:
    """What each call returns or raises, in the order of the items; so many calls are under way at once.

    A server in the same process does all the work of a call before anything is waited for: with all calls at
    once, the other tasks would get their turn only after the last.
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
