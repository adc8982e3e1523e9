"""A thread for blocking calls to one connection to an SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, ParamSpec, TypeVar

from allot.storage.interface import StoreUnavailableError
from allot.storage.sqlite_files import explain

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


_Calls = SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None]


class SqliteThread:
    """Runs one call at a time. Every commit passes here: executors take more steps, and locks, for each call."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._calls = _Calls()
        self._lock = Lock()
        self._is_closed = False
        self._thread = Thread(target=_work, args=(self._calls,), name=name, daemon=True)
        self._thread.start()

    async def run(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """The result of the function. Errors of SQLite become a `StorageError` that says what to do."""
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._is_closed:
                raise StoreUnavailableError("the store is closed")
            self._calls.put((partial(function, *arguments, **options), answer))
        try:
            return await answer
        except sqlite3.Error as error:
            raise explain(self._path, error) from error

    def shutdown(self) -> None:
        """Returns when all calls have ended. There are no others from now on."""
        with self._lock:
            self._is_closed = True
            self._calls.put(None)
        self._thread.join()


def _work(calls: _Calls) -> None:
    while _run_next(calls):
        pass


def _run_next(calls: _Calls) -> bool:
    """Wait for a call and run it; False if there are no more. Nothing of it is kept until the next one."""
    next_call = calls.get()
    if next_call is None:
        return False
    call, answer = next_call
    if answer.cancelled():
        return True
    try:
        settle = partial(_succeed, answer, call())
    except BaseException as error:  # noqa: BLE001 - it is for who waits
        settle = partial(_fail, answer, error)
    with suppress(RuntimeError):  # the event loop is closed: no caller waits
        answer.get_loop().call_soon_threadsafe(settle)
    return True


def _succeed(answer: asyncio.Future[Any], result: Any) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: asyncio.Future[Any], error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)
