"""The policies of the store, as decisions read them: what is written counts at once."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from allot.apiserver.auth.rbac.policy_feed import PolicyFeed
from allot.apiserver.watch_cache.cache import WAKE_AT_ONCE
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.storage.interface import Delete, Put
from allot.storage.memory import MemoryStore

ROLES: Final = "registry/clusterroles.rbac.authorization.k8s.io/"


def a_role(name: str) -> Put:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
    }
    return Put(ROLES + name, msgspec.json.encode(role))


def test_a_role_counts_as_soon_as_it_is_written() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        caches = Caches(store)
        feed = PolicyFeed(caches)
        await feed.start()
        before = feed.catch_up()
        assert feed.catch_up() == before
        await store.write(Put("registry/pods/default/a", b"{}"))
        assert feed.catch_up() == before, "pods grant nothing"

        await store.write(a_role("new"))
        after = feed.catch_up()
        assert after != before
        assert feed.catch_up() == after
        await store.write(Delete(ROLES + "new"))
        assert feed.catch_up() != after
        await caches.close()
        await store.close()

    asyncio.run(scenario())


def test_nothing_is_looked_for_without_a_change() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        caches = Caches(store)
        feed = PolicyFeed(caches)
        await feed.start()
        feed.catch_up()
        for _, follower in feed._followers:
            follower.news = None  # type: ignore[method-assign,assignment]
        await store.write(Put("registry/pods/default/a", b"{}"))
        feed.catch_up()
        await caches.close()
        await store.close()

    asyncio.run(scenario())


def test_a_role_counts_at_once_however_many_watch() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        caches = Caches(store)
        cache = caches.of(resource_named("rbac.authorization.k8s.io", "clusterroles"))
        await cache.start()
        for _ in range(2 * WAKE_AT_ONCE):
            cache.listen(lambda: None)
        feed = PolicyFeed(caches)
        await feed.start()
        before = feed.catch_up()

        await store.write(a_role("new"))

        assert feed.catch_up() != before
        await caches.close()
        await store.close()

    asyncio.run(scenario())
