"""Controllers yield to the event loop, however large one object is. Counted in calls, not in seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.client.transport import JSON, Query, Response
from allot.controllers.manager import ControllerManager
from allot.controllers.registry import select_controllers
from allot.quota import decisions
from allot.testing.servers import TOKEN, LocalServer

SETS = "/apis/apps/v1/namespaces/default/replicasets"
MAPS = "/api/v1/namespaces/default/configmaps"


class Counted(InProcessTransport):
    """Counts requests."""

    def __init__(self, server: LocalServer) -> None:
        super().__init__(server.server.app, TOKEN)
        self.count = 0

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Any = None,
    ) -> Response:
        self.count += 1
        return await super().request(method, path, query, body, content_type, headers)


async def longest_without_a_turn(
    counter: Callable[[], int], is_done: Callable[[], Awaitable[bool]]
) -> int:
    """The most that is counted between two turns of this task."""
    longest, before, rounds = 0, counter(), 0
    while True:
        await asyncio.sleep(0)
        longest, before = max(longest, counter() - before), counter()
        rounds += 1
        if not rounds % 200 and await is_done():
            return longest
        assert rounds < 1_000_000, "it takes for ever"


def test_a_replica_set_with_a_billion_pods() -> None:
    async def main() -> None:
        async with LocalServer() as server:
            transport = Counted(server)
            manager = ControllerManager(
                Client(transport), select_controllers(["replicaset-controller"])
            )
            running = asyncio.create_task(manager.run())
            while not manager.is_ready:
                await asyncio.sleep(0.001)
            for name, replicas in (("wild", 1_000_000_000), ("tame", 3)):
                labels = {"a": name}
                container = {"name": "c", "image": "i"}
                template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
                selector = {"matchLabels": labels}
                spec = {"replicas": replicas, "selector": selector, "template": template}
                await server.post(SETS, {"metadata": {"name": name}, "spec": spec})

            async def is_tame() -> bool:
                found = await server.get(f"{SETS}/tame")
                return bool(found.get("status", {}).get("replicas") == 3)

            assert await longest_without_a_turn(lambda: transport.count, is_tame) <= 40
            pods = await server.get("/api/v1/namespaces/default/pods")
            assert len(pods["items"]) <= 1003
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())


def test_garbage_in_heaps() -> None:
    async def main() -> None:
        async with LocalServer() as server:
            owner = await server.post(MAPS, {"metadata": {"name": "owner"}})
            uid = owner["metadata"]["uid"]
            ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
            for number in range(400):
                metadata = {"name": f"c-{number}", "ownerReferences": [ref]}
                await server.post(MAPS, {"metadata": metadata})
            transport = Counted(server)
            manager = ControllerManager(
                Client(transport), select_controllers(["garbage-collector-controller"])
            )
            running = asyncio.create_task(manager.run())
            while not manager.is_ready:
                await asyncio.sleep(0.001)
            await server.ask("DELETE", f"{MAPS}/owner")

            async def is_empty() -> bool:
                return not (await server.get(MAPS))["items"]

            assert await longest_without_a_turn(lambda: transport.count, is_empty) <= 40
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())


def test_deleting_a_collection() -> None:
    async def main() -> None:
        async with LocalServer() as server:
            for number in range(300):
                await server.post(MAPS, {"metadata": {"name": f"c-{number}"}})
            work = asyncio.create_task(server.ask("DELETE", MAPS))
            turns = 0
            while not work.done():
                turns += 1
                await asyncio.sleep(0)
            assert turns >= 30
            assert work.result().code == 200

    asyncio.run(main())


def test_counting_a_quota(monkeypatch: Any) -> None:
    sizes: list[int] = []
    count = decisions.total_usage

    def noted(quota: RawObject, counter: Any, objects: list[Any]) -> Any:
        sizes.append(len(objects))
        return count(quota, counter, objects)  # type: ignore[arg-type]

    monkeypatch.setattr("allot.controllers.resource_quota.controller.total_usage", noted)

    async def main() -> None:
        async with LocalServer() as server:
            for number in range(120):
                await server.post(MAPS, {"metadata": {"name": f"c-{number}"}})
            quotas = "/api/v1/namespaces/default/resourcequotas"
            hard = {"count/configmaps": "1000"}
            await server.post(quotas, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
            manager = ControllerManager(
                Client(Counted(server)), select_controllers(["resourcequota-controller"])
            )
            running = asyncio.create_task(manager.run())
            async with asyncio.timeout(60):
                while (await server.get(f"{quotas}/q")).get("status", {}).get("used") != {
                    "count/configmaps": "120"
                }:
                    await asyncio.sleep(0.01)
            assert max(sizes) == 50
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())
