"""Updates start over from what is stored when something else was written meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from allot.apiserver.watch_cache.caches import resource_named
from allot.storage.interface import Operation, Put
from allot.storage.memory import MemoryStore
from allot.testing.servers import LocalServer

PATH = "/api/v1/namespaces/default/configmaps"


class InterruptedStore(MemoryStore):
    """Something else happens just before a write."""

    interruption: Callable[[], Awaitable[object]] | None = None

    async def write(self, *operations: Operation) -> int:
        interruption, self.interruption = self.interruption, None
        if interruption is not None:
            await interruption()
        return await super().write(*operations)


def test_a_cache_that_was_replaced_meanwhile_is_not_asked_again() -> None:
    """As when the definition of a custom resource changes."""

    async def scenario() -> None:
        store = InterruptedStore()
        async with LocalServer(store) as server:
            await server.post(PATH, {"metadata": {"name": "m"}, "data": {"a": "1"}})
            caches = server.server.caches

            async def change_and_forget() -> None:
                [entry] = (await store.list("registry/configmaps/default/m")).entries
                await store.write(Put(entry.key, entry.value.replace(b'"1"', b'"2"')))
                await caches.forget(resource_named("", "configmaps"))

            store.interruption = change_and_forget
            answer = await server.ask(
                "PATCH",
                f"{PATH}/m",
                {"data": {"b": "3"}},
                headers={"content-type": "application/merge-patch+json"},
            )
            assert answer.code == 200, answer.content
            assert answer.json["data"] == {"a": "2", "b": "3"}

    asyncio.run(scenario())
