"""Memory of the watch cache beside the objects is bounded."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Hashable
from typing import Any

import pytest

from allot.apiserver.watch_cache import stored_objects
from allot.apiserver.watch_cache.cache import ResourceCache
from allot.apiserver.watch_cache.caches import Caches, key_prefix, resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.apiserver.watch_cache.representations import (
    OVERHEAD,
    REPRESENTATIONS,
    RepresentationBudget,
)
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.apiserver.watch_cache.window import WindowBudget
from allot.storage.interface import CompactedError, Delete, Entry, Put
from allot.storage.memory import MemoryStore
from allot.testing.servers import LocalServer

MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


def a_cache(store: MemoryStore, plural: str, budget: WindowBudget) -> ResourceCache:
    resource = resource_named("", plural)
    return ResourceCache(store, key_prefix(resource), codec_for(resource), budget=budget)


class _Owner:
    codec = None

    def __init__(self) -> None:
        self.forgotten: list[Hashable] = []

    def forget(self, form: Hashable) -> None:
        self.forgotten.append(form)


def test_the_oldest_forms_go_first() -> None:
    owner, forms = _Owner(), RepresentationBudget(3 * (OVERHEAD + 100))
    for number in range(5):
        forms.keep(owner, number, 100)
    assert owner.forgotten == [0, 1]
    forms.keep(owner, "larger than all", 10_000)
    assert owner.forgotten == [0, 1, 2, 3, 4, "larger than all"]
    assert forms.bytes == 0


def test_what_is_discarded_leaves_the_others_in_order() -> None:
    owners, forms = [_Owner(), _Owner()], RepresentationBudget(4 * (OVERHEAD + 100))
    for number in range(4):
        forms.keep(owners[number % 2], number, 100)
    forms.discard(lambda owner: owner is owners[0])
    assert [owner.forgotten for owner in owners] == [[0, 2], []]
    assert forms.bytes == 2 * (OVERHEAD + 100)
    forms.keep(owners[0], "large", 2 * OVERHEAD + 300)
    assert [owner.forgotten for owner in owners] == [[0, 2], [1]]


def test_what_is_forgotten_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_objects, "REPRESENTATIONS", RepresentationBudget(0))
    codec = codec_for(resource_named("", "configmaps"))
    entry = Entry("k", b'{"metadata":{"name":"a"},"data":{"k":"v"}}', 7, 7)
    stored = StoredObject(entry, codec)
    assert stored.object.metadata.name == "a"
    assert stored.object is not stored.object
    assert stored.body(codec, "v1") == stored.body(codec, "v1")
    assert stored.body(codec, "v1") is not stored.body(codec, "v1")


def test_old_revisions_do_not_stay_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = RepresentationBudget(50_000)
    monkeypatch.setattr(stored_objects, "REPRESENTATIONS", forms)
    decoded: weakref.WeakSet[Any] = weakref.WeakSet()
    plain = StoredObject.object.fget  # type: ignore[attr-defined]

    def noticed(stored: StoredObject) -> Any:
        found = plain(stored)
        decoded.add(found)
        return found

    monkeypatch.setattr(StoredObject, "object", property(noticed))
    # RawObject compares by value and has no hash; identity is meant here.
    monkeypatch.setattr("allot.api.raw.RawObject.__hash__", object.__hash__)
    monkeypatch.setattr("allot.api.raw.RawObject.__eq__", object.__eq__)

    async def run() -> None:
        async with LocalServer() as server:
            await server.post(MAPS, {"metadata": {"name": "a"}})
            for number in range(100):
                sent = {"data": {"k": f"{number}" + "x" * 500}}
                await server.ask("PATCH", f"{MAPS}/a", sent, content_type=MERGE)
            gc.collect()
            assert forms.bytes <= forms.max_bytes
            assert len(decoded) < 30

    asyncio.run(run())


def test_all_windows_share_one_budget_and_the_largest_gives_way() -> None:
    async def run() -> None:
        store, budget = MemoryStore(), WindowBudget(10_000)
        loud, quiet = a_cache(store, "configmaps", budget), a_cache(store, "secrets", budget)
        for cache in (loud, quiet):
            await cache.start()
        for number in range(10):
            await store.write(Put(f"{quiet.prefix}default/{number}", b"x" * 100))
            await quiet.refresh()
        for number in range(200):
            await store.write(Put(f"{loud.prefix}default/a", b"%d" % number + b"x" * 500))
            await loud.refresh()
        assert quiet.window_length == 10
        assert loud.window_bytes + quiet.window_bytes <= 10_000
        assert loud.window_length > 10
        for cache in (loud, quiet):
            await cache.close()

    asyncio.run(run())


def test_windows_are_bounded_in_changes_too() -> None:
    async def run() -> None:
        store, budget = MemoryStore(), WindowBudget(max_changes=100)
        caches = [a_cache(store, plural, budget) for plural in ("configmaps", "secrets")]
        for cache in caches:
            await cache.start()
        for number in range(300):
            await store.write(Put(f"{caches[number % 2].prefix}default/a", b"%d" % number))
            await caches[number % 2].refresh()
        lengths = [cache.window_length for cache in caches]
        assert sum(lengths) <= 100
        assert min(lengths) > 30
        for cache in caches:
            await cache.close()

    asyncio.run(run())


class _CountingWindow:
    """Gives up what it is told to, and counts how often it is asked what it holds."""

    def __init__(self) -> None:
        self.window_bytes = 0
        self.length = 0
        self.asked = 0

    @property
    def window_length(self) -> int:
        self.asked += 1
        return self.length

    def shrink_window(self, max_bytes: int, max_changes: int) -> None:
        self.window_bytes = min(self.window_bytes, max_bytes)
        self.length = min(self.length, max_changes)


def test_windows_are_counted_only_when_they_may_be_too_large() -> None:
    window, budget = _CountingWindow(), WindowBudget(max_changes=1_600)
    budget.add(window)
    for _ in range(16_000):
        window.length += 1
        budget.grow(0, 1)
        assert window.length <= 1_600
    assert window.asked < 16_000 / 10


def test_deleted_objects_in_the_window_count() -> None:
    async def run() -> None:
        store, budget = MemoryStore(), WindowBudget(5_000)
        for number in range(50):
            await store.write(Put(f"registry/configmaps/default/{number}", b"x" * 1000))
        cache = a_cache(store, "configmaps", budget)
        await cache.start()
        for number in range(50):
            await store.write(Delete(f"registry/configmaps/default/{number}"))
            await cache.refresh()
        assert cache.window_length <= 5
        await cache.close()

    asyncio.run(run())


def test_keys_stay_sorted_through_changes() -> None:
    async def run() -> None:
        store = MemoryStore()
        cache = a_cache(store, "configmaps", WindowBudget())
        await cache.start()
        for number in (5, 1, 9, 3):
            await store.write(Put(f"{cache.prefix}default/{number}", b"{}"))
            await cache.refresh()
            keys = [stored.key for stored in cache.select(cache.prefix)]
            assert keys == sorted(keys)
        await store.write(Delete(f"{cache.prefix}default/5"))
        await cache.refresh()
        assert [stored.key[-1] for stored in cache.select(cache.prefix)] == ["1", "3", "9"]
        await cache.close()

    asyncio.run(run())


def test_the_history_of_a_store_in_memory_is_bounded() -> None:
    async def run() -> None:
        store = MemoryStore(history_bytes=10_000)
        for number in range(100):
            await store.write(Put("a", b"%d" % number + b"x" * 1000))
        assert await store.oldest() > 80
        with pytest.raises(CompactedError):
            await store.list("", revision=10)

    asyncio.run(run())


def test_the_answer_of_a_write_is_not_kept() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            created = await server.post(MAPS, {"metadata": {"name": "a"}})
            caches = server.server.caches
            maps = resource_named("", "configmaps")
            stored = await caches.get(maps, caches.key(maps, "default", "a"))
            assert stored is not None
            assert stored._bodies is None
            assert await server.get(f"{MAPS}/a") == created
            assert stored._bodies is not None

    asyncio.run(run())


def test_a_written_object_that_is_in_no_cache_is_not_counted() -> None:
    resource = resource_named("", "configmaps")
    caches, codec = Caches(MemoryStore()), codec_for(resource)
    entry = Entry("k", b'{"metadata":{"name":"a"},"data":{"k":"v"}}', 7, 7)
    obj = codec.decode_stored(entry.value)
    before = REPRESENTATIONS.bytes

    stored = caches.written(resource, entry, obj)

    assert stored.is_decoded
    assert stored.object.get("data") == {"k": "v"}
    assert stored.object.metadata.resource_version == "7"
    assert REPRESENTATIONS.bytes == before
