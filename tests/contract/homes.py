"""Where the stores of one test live: each home opens its kind of store, again and again on the same data."""

from __future__ import annotations

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from allot.storage.interface import Store
from allot.storage.memory import MemoryStore
from allot.storage.sqlite import SqliteStore
from tests.contract.one_loop import run

Result = TypeVar("Result")

SMALL_WINDOW = 8
"""The size of the window of recent changes in tests that want to fall out of it."""

_prefixes = itertools.count()


class Home(ABC):
    """One kind of store, and a place for its data."""

    @abstractmethod
    async def _open(self, window_revisions: int) -> Store: ...

    @asynccontextmanager
    async def open(self, window_revisions: int = 10_000) -> AsyncIterator[Store]:
        store = await self._open(window_revisions)
        try:
            yield store
        finally:
            await store.close()

    def run(
        self, scenario: Callable[[Store], Awaitable[Result]], window_revisions: int = 10_000
    ) -> Result:
        """Open the store, play the scenario and close it, in an event loop of their own."""

        async def play() -> Result:
            async with asyncio.timeout(150), self.open(window_revisions) as store:
                return await scenario(store)

        return run(play())


class MemoryHome(Home):
    """Not much of a home: every store begins empty."""

    async def _open(self, window_revisions: int) -> Store:
        return MemoryStore(window_revisions=window_revisions, page_revisions=7)


class SqliteHome(Home):
    def __init__(self, directory: Path, *, shows_pending_writes: bool = False) -> None:
        self.path = directory / "store.db"
        self._shows_pending_writes = shows_pending_writes

    async def _open(self, window_revisions: int) -> Store:
        return await SqliteStore.open(
            self.path,
            window_revisions=window_revisions,
            shows_pending_writes=self._shows_pending_writes,
        )


class EtcdHome(Home):
    def __init__(self, url: str) -> None:
        self._url = url
        self._prefix = f"/contract-{next(_prefixes)}/"

    async def _open(self, window_revisions: int) -> Store:
        from allot.storage.etcd import EtcdStore

        return await EtcdStore.connect(
            [self._url], prefix=self._prefix, window_revisions=window_revisions
        )
