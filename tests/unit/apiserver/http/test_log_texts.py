"""Texts of logs are shared, and computed few at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from allot.apiserver.api_errors import ApiError
from allot.apiserver.http.log_texts import AT_ONCE, LogTexts
from allot.apiserver.pacing import Workers
from allot.testing.virtual_time import run_in_virtual_time

T = TypeVar("T")


class SlowWorkers(Workers):
    """Take a second for each text, and count."""

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__()
        self._seconds = seconds
        self.running = self.most = self.runs = 0

    async def run(self, size: int, work: Callable[[], T]) -> T:
        self.runs += 1
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(self._seconds)
        self.running -= 1
        return work()


def get(texts: LogTexts, user: str, key: Any) -> asyncio.Task[bytes]:
    return asyncio.create_task(texts.get(user, key, f"log {key}".encode, is_long=True))


def test_equal_texts_are_computed_once() -> None:
    async def story() -> None:
        workers = SlowWorkers()
        texts = LogTexts(workers)
        asking = [get(texts, f"u{number % 3}", "a") for number in range(1500)]
        await asyncio.sleep(0.5)
        asking[0].cancel()
        await asyncio.sleep(1)
        assert {task.result() for task in asking[1:]} == {b"log a"}
        assert await get(texts, "u", "a") == b"log a"
        assert workers.runs == 1

    run_in_virtual_time(story())


def test_few_are_computed_at_a_time_and_fairly() -> None:
    async def story() -> None:
        workers = SlowWorkers(0.1)
        texts = LogTexts(workers)
        many = [get(texts, "ann", number) for number in range(700)]
        await asyncio.sleep(0.05)
        loop = asyncio.get_running_loop()
        started = loop.time()
        assert await get(texts, "ben", "b") == b"log b"
        assert loop.time() - started < 0.2, "it does not queue behind those of ann"
        answers = await asyncio.gather(*many, return_exceptions=True)
        codes = Counter(each.code if isinstance(each, ApiError) else type(each) for each in answers)
        assert set(codes) == {bytes, 429}
        assert workers.most <= AT_ONCE
        assert await get(texts, "ann", 0) == b"log 0"

    run_in_virtual_time(story())


def test_short_texts_need_no_thread() -> None:
    async def story() -> None:
        workers = SlowWorkers()
        assert await LogTexts(workers).get("ann", "a", b"a".strip, is_long=False) == b"a"
        assert workers.runs == 0

    run_in_virtual_time(story())


def test_an_error_is_told_to_all() -> None:
    async def story() -> None:
        texts = LogTexts(SlowWorkers())

        def failing() -> bytes:
            raise ValueError("no text")

        asking = [
            asyncio.create_task(texts.get("ann", "a", failing, is_long=True)) for _ in range(2)
        ]
        for task in asking:
            with pytest.raises(ValueError, match="no text"):
                await task

    run_in_virtual_time(story())
