"""Holds back what leaves the server until the writes that it may show are durable (decision 0015).

The components at the other end of a link are exempt: they end with this process, and are restarted when writes are
withdrawn.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

from allot.apiserver.kinds.resources import Resource
from allot.apiserver.watch_cache.caches import Caches
from allot.storage.interface import StorageError, StoreUnavailableError


class Durability:
    """Of what one request is answered."""

    __slots__ = ("_caches", "_store", "_withdrawals")

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._store = caches.store
        self._withdrawals = self._store.withdrawals

    def last_read(self, resource: Resource) -> int:
        """The revision that has to be durable after a resource was read."""
        return self._caches.last_change(resource)

    @property
    def last_shown(self) -> int:
        """The revision that has to be durable after anything was read or written."""
        return self._store.announced

    def is_durable(self, revision: int) -> bool:
        """Whether there is nothing to wait for."""
        store = self._store
        return revision <= store.durable and store.withdrawals == self._withdrawals

    async def until_durable(self, revision: int) -> None:
        """Returns when all writes up to a revision are durable; raises `StorageError` if some were withdrawn."""
        store = self._store
        if revision > store.durable:
            await store.until_durable(revision)
        if store.withdrawals != self._withdrawals:
            raise StoreUnavailableError("a write failed meanwhile; try again")

    async def of_chunks(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The chunks of a watch, each when it is durable. They end when writes are withdrawn: clients watch again."""
        with suppress(StorageError):
            async for chunk in chunks:
                await self.until_durable(self.last_shown)
                yield chunk
