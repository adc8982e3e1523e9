"""A cache is up to date when it is asked, without waiting if the store knows its last revision."""

from __future__ import annotations

import asyncio

from allot.apiserver.watch_cache.cache import ResourceCache
from allot.apiserver.watch_cache.caches import key_prefix, resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.storage.interface import Delete, Put
from allot.storage.memory import MemoryStore

RESOURCE = resource_named("", "configmaps")
KEY = key_prefix(RESOURCE, "default") + "a"
BODY = b'{"metadata":{"name":"a","namespace":"default"}}'


class RemoteStore(MemoryStore):
    """One that others write to as well."""

    known_revision = -1


def a_cache(store: MemoryStore) -> ResourceCache:
    return ResourceCache(store, key_prefix(RESOURCE), codec_for(RESOURCE), window=2)


def test_what_was_written_is_there_at_once() -> None:
    async def run() -> None:
        store = MemoryStore()
        cache = a_cache(store)
        assert not cache.refresh_at_once(), "it is not loaded yet"
        await cache.refresh()
        await store.write(Put(KEY, BODY))
        assert cache.refresh_at_once()
        stored = cache.get(KEY)
        assert stored is not None
        assert (stored.entry.value, cache.revision) == (BODY, store.known_revision)
        await store.write(Put("elsewhere", b""))
        assert cache.refresh_at_once()
        assert cache.revision == store.known_revision == await cache.refresh()
        assert cache.last_change < cache.revision
        await store.write(Delete(KEY))
        assert cache.refresh_at_once()
        assert cache.get(KEY) is None
        await cache.close()
        await store.close()

    asyncio.run(run())


def test_a_cache_waits_for_a_store_that_others_write_to() -> None:
    async def run() -> None:
        store = RemoteStore()
        cache = a_cache(store)
        await cache.refresh()
        assert not cache.refresh_at_once()
        await cache.close()
        await store.close()

    asyncio.run(run())


def test_a_cache_that_fell_behind_is_loaded_again() -> None:
    async def run() -> None:
        store = MemoryStore(window_revisions=2)
        cache = a_cache(store)
        await cache.refresh()
        for _ in range(5):
            await store.write(Put(KEY, BODY))
        assert not cache.refresh_at_once()
        assert await cache.refresh() == store.known_revision
        assert cache.refresh_at_once()
        assert cache.get(KEY) is not None
        await cache.close()
        await store.close()

    asyncio.run(run())
