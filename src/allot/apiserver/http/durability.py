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

    async def of_read(self, resource: Resource) -> None:
        """Returns when what was read of a resource is durable; raises `StorageError` if it was withdrawn."""
        await self.of_revision(self._caches.last_change(resource))

    async def of_everything(self) -> None:
        """Returns when all writes are durable that were shown until now; raises `StorageError` if some were withdrawn."""
        await self.of_revision(self._store.announced)

    async def of_revision(self, revision: int) -> None:
        """Returns when a revision is durable; raises `StorageError` if writes were withdrawn since the request began."""
        store = self._store
        if revision > store.durable:
            await store.until_durable(revision)
        if store.withdrawals != self._withdrawals:
            raise StoreUnavailableError("a write failed meanwhile; try again")

    async def of_chunks(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The chunks of a watch, each when it is durable. They end when writes are withdrawn: clients watch again."""
        with suppress(StorageError):
            async for chunk in chunks:
                await self.of_everything()
                yield chunk
