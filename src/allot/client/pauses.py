"""Work that shares the event loop: done in pieces, with the others' turn between them.

Pieces are counted in items, not in seconds, so that what happens is the same on every machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterable
from typing import Final, TypeVar

T = TypeVar("T")

ITEMS_AT_ONCE: Final = 100
"""Items between two pauses, where each takes some microseconds."""

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
