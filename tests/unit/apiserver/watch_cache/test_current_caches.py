"""A cache that says that it is current has exactly what the store shows, also when writes are withdrawn."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from pathlib import Path
from typing import NoReturn

import pytest

from allot.apiserver.kinds.resource_slice import pool_of
from allot.apiserver.watch_cache.cache import ResourceCache
from allot.apiserver.watch_cache.caches import key_prefix, resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.storage.interface import Delete, Operation, Put, StorageError, Store
from allot.storage.memory import MemoryStore
from allot.storage.revision_log import RevisionLog
from allot.storage.sqlite import SqliteStore

RESOURCES = [resource_named("", plural) for plural in ("configmaps", "secrets")]
BODY = b'{"metadata":{"name":"a","namespace":"default"}}'
WRITES = 30


class World:
    """Random writes to one store, and the caches that follow it."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.random = random.Random(seed)  # noqa: S311
        self.caches = [
            ResourceCache(store, key_prefix(each), codec_for(each), window=5) for each in RESOURCES
        ]
        self.checked = 0

    async def check(self) -> None:
        for cache in self.caches:
            if cache.is_current:
                page = await self.store.list(cache.prefix)  # without waiting
                assert [each.entry for each in cache.select(cache.prefix)] == page.entries
                assert cache.revision == self.store.known_revision
                self.checked += 1

    async def write(self) -> None:
        for _ in range(WRITES):
            operations: dict[str, Operation] = {}
            for _ in range(self.random.choice((1, 1, 3))):
                resource = self.random.choice(RESOURCES)
                key = f"{key_prefix(resource, 'default')}{self.random.randrange(9)}"
                operations[key] = Delete(key) if self.random.random() < 0.3 else Put(key, BODY)
            write = self.random.choice((self.store.write, self.store.submit))
            try:
                await write(*operations.values())
            except StorageError:
                await asyncio.sleep(0.001)  # its commit failed
            await self.check()

    async def read(self) -> None:
        for _ in range(WRITES):
            await self.random.choice(self.caches).refresh()
            await self.check()
            await asyncio.sleep(self.random.choice((0, 0.001)))

    async def run(self) -> None:
        await asyncio.gather(self.write(), self.write(), self.read())
        for cache in self.caches:
            await cache.refresh()
            assert cache.is_current
        await self.check()
        for cache in self.caches:
            await cache.close()


@pytest.mark.parametrize("seed", range(5))
def test_in_memory(seed: int) -> None:
    async def run() -> None:
        store = MemoryStore(window_revisions=3)
        world = World(store, seed)
        await world.run()
        assert world.checked > WRITES
        await store.close()

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(5))
def test_while_commits_fail(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> NoReturn:
        raise sqlite3.OperationalError("disk I/O error")

    async def fail_some() -> None:
        for _ in range(2):
            await asyncio.sleep(0.004)
            with monkeypatch.context() as patch:
                patch.setattr(RevisionLog, "append", fail)
                await asyncio.sleep(0.004)

    async def run() -> None:
        store = await SqliteStore.open(
            tmp_path / "store.db", compaction_interval_seconds=0, shows_pending_writes=True
        )
        world = World(store, seed)
        await asyncio.gather(world.run(), fail_some())
        assert world.checked > WRITES
        await store.close()

    asyncio.run(run())


def test_a_slice_that_cannot_be_read_is_shown_without_a_pool() -> None:
    async def story() -> None:
        store = MemoryStore()
        slices = resource_named("resource.k8s.io", "resourceslices")
        cache = ResourceCache(store, key_prefix(slices), codec_for(slices), index=pool_of)
        await cache.start()
        key = f"{key_prefix(slices)}a"

        await store.write(Put(key, b'{"spec":{"driver":3}}'))

        assert cache.is_current
        assert [each.key for each in cache.select(cache.prefix)] == [key]
        assert cache.last_change == cache.revision == store.known_revision
        assert [*cache.index_values] == [None]
        await cache.close()
        await store.close()

    asyncio.run(story())
