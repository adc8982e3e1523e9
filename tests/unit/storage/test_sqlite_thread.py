"""Calls to a connection run in a thread, one at a time, until it is shut down."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from allot.storage.interface import StorageError, StoreUnavailableError
from allot.storage.sqlite_thread import SqliteThread

PATH = Path("store.db")


def fail(error: Exception) -> None:
    raise error


def test_results_and_errors_come_back() -> None:
    async def scenario() -> None:
        thread = SqliteThread(PATH, "test")
        assert await thread.run(sorted, [2, 1], reverse=True) == [2, 1]
        assert await thread.run(threading.current_thread) is not threading.current_thread()
        with pytest.raises(KeyError):
            await thread.run(fail, KeyError("a"))
        with pytest.raises(StorageError, match=r"store\.db"):
            await thread.run(fail, sqlite3.OperationalError("disk I/O error"))
        thread.shutdown()
        with pytest.raises(StoreUnavailableError, match="closed"):
            await thread.run(sorted, [])

    asyncio.run(scenario())


def test_a_call_whose_caller_is_cancelled_is_left_out_unless_it_has_begun() -> None:
    begun, go_on = threading.Event(), threading.Event()
    calls: list[str] = []

    def wait() -> None:
        begun.set()
        assert go_on.wait(60)
        calls.append("first")

    async def scenario() -> None:
        thread = SqliteThread(PATH, "test")
        first = asyncio.ensure_future(thread.run(wait))
        second = asyncio.ensure_future(thread.run(calls.append, "second"))
        third = asyncio.ensure_future(thread.run(calls.append, "third"))
        await asyncio.to_thread(begun.wait, 60)
        first.cancel()
        second.cancel()
        await asyncio.sleep(0)
        go_on.set()
        await third
        assert (first.cancelled(), second.cancelled()) == (True, True)
        await asyncio.to_thread(thread.shutdown)

    asyncio.run(scenario())
    assert calls == ["first", "third"]
