"""A thread for blocking calls to one connection to an SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from allot.storage.interface import StoreUnavailableError
from allot.storage.sqlite_files import explain

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class SqliteThread:
    """Runs one call at a time."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._executor = ThreadPoolExecutor(1, name)

    async def run(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """The result of the function. Errors of SQLite become a `StorageError` that says what to do."""
        try:
            work = self._executor.submit(function, *arguments, **options)
        except RuntimeError:
            raise StoreUnavailableError("the store is closed") from None
        try:
            return await asyncio.wrap_future(work)
        except sqlite3.Error as error:
            raise explain(self._path, error) from error

    def shutdown(self) -> None:
        self._executor.shutdown()
