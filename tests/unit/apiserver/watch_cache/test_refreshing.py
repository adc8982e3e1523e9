"""A cache is up to date when it is asked, without waiting if the store knows its last revision."""

from __future__ import annotations

import asyncio
from typing import Any

from allot.apiserver.watch_cache.cache import ResourceCache
from allot.apiserver.watch_cache.caches import key_prefix, resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.storage.interface import Delete, Page, Put
from allot.storage.memory import MemoryStore

RESOURCE = resource_named("", "configmaps")
KEY = key_prefix(RESOURCE, "default") + "a"
BODY = b'{"metadata":{"name":"a","namespace":"default"}}'


class RemoteStore(MemoryStore):
    """One that others write to as well."""

    known_revision = -1


class BusyStore(MemoryStore):
    """One that changes much while a cache is loaded."""

    async def list(self, *arguments: Any, **options: Any) -> Page:
        page = await super().list(*arguments, **options)
        for _ in range(5):
            await self.write(Put(KEY, BODY))
        return page


def a_cache(store: MemoryStore) -> ResourceCache:
    return ResourceCache(store, key_prefix(RESOURCE), codec_for(RESOURCE), window=2)


def test_what_was_written_is_there_at_once() -> None:
    async def run() -> None:
        store = MemoryStore()
        cache = a_cache(store)
        was_current = cache.is_current
        await cache.refresh()
        assert (was_current, cache.is_current) == (False, True)
        await store.write(Put(KEY, BODY))
        stored = cache.get(KEY)
        assert stored is not None
        assert (stored.entry.value, cache.revision) == (BODY, store.known_revision)
        await store.write(Put("elsewhere", b""))
        assert cache.revision == store.known_revision == await cache.refresh()
        assert cache.last_change < cache.revision
        await store.write(Delete(KEY))
        assert cache.get(KEY) is None
        assert cache.is_current
        await cache.close()
        await store.close()

    asyncio.run(run())


def test_a_cache_waits_for_a_store_that_others_write_to() -> None:
    async def run() -> None:
        store = RemoteStore()
        cache = a_cache(store)
        revision = await cache.refresh()
        assert not cache.is_current
        await store.write(Put(KEY, BODY), Put("elsewhere", b""))
        assert cache.get(KEY) is not None, "what has arrived is there at once, too"
        await store.write(Put("elsewhere", b""))
        assert await cache.refresh() == cache.revision == revision + 2
        assert not cache.is_current
        await cache.close()
        await store.close()

    asyncio.run(run())


def test_a_burst_does_not_cut_off_a_cache() -> None:
    async def run() -> None:
        store = MemoryStore(window_revisions=2)
        cache = a_cache(store)
        await cache.refresh()
        epoch = cache.epoch
        for _ in range(5):
            await store.write(Put(KEY, BODY))
        stored = cache.get(KEY)
        assert stored is not None
        assert stored.revision == await cache.refresh() == store.known_revision
        assert cache.epoch == epoch
        await cache.close()
        await store.close()

    asyncio.run(run())


def test_a_cache_that_was_cut_off_is_loaded_again() -> None:
    async def run() -> None:
        store = MemoryStore()
        cache = a_cache(store)
        await cache.refresh()
        epoch = cache.epoch
        store._broadcast.withdraw(0)  # as a store does whose commit failed
        was_current = cache.is_current
        await store.write(Put(KEY, BODY))
        assert cache.get(KEY) is None
        assert await cache.refresh() == store.known_revision
        assert (was_current, cache.is_current, cache.epoch) == (False, True, epoch + 1)
        assert cache.get(KEY) is not None
        await cache.close()
        await store.close()

    asyncio.run(run())


def test_a_cache_is_current_when_it_has_read_what_has_left_the_window() -> None:
    async def run() -> None:
        store = BusyStore(window_revisions=2)
        cache = a_cache(store)
        await cache.start()
        was_current = cache.is_current  # history is still to be read
        for _ in range(10):
            await asyncio.sleep(0)
            await cache.refresh()
        assert (was_current, cache.is_current) == (False, True)
        stored = cache.get(KEY)
        assert stored is not None
        assert stored.revision == store.known_revision == cache.revision == 5
        await cache.close()
        await store.close()

    asyncio.run(run())
