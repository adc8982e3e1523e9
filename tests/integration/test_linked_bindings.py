"""A claim and the binding of its pod in one message over a link, and what happens if one of them fails."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from allot.apiserver.http.link_server import LinkServer
from allot.client.link import RequestFrame
from allot.storage.memory import MemoryStore
from allot.testing.servers import LocalServer
from tests.integration.test_linked_pod_steps import (
    ALL_PODS,
    DRA,
    CountingLink,
    linked_components,
    until_known,
)

CLAIMS = f"{DRA}/namespaces/default/resourceclaims"
IN_ONE_MESSAGE = "PUT resourceclaims/NAME + POST pods/NAME/binding"


class Scene(NamedTuple):
    server: LocalServer
    link: CountingLink

    async def pod(self) -> dict[str, Any]:
        container = {"name": "m", "image": "i", "resources": {"claims": [{"name": "c"}]}}
        claims = [{"name": "c", "resourceClaimName": "p-claim"}]
        spec = {"containers": [container], "resourceClaims": claims}
        return await self.server.post(ALL_PODS, {"metadata": {"name": "p"}, "spec": spec})

    async def until(self, path: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            found: dict[str, Any] = await self.server.get(path)
            if holds(found):
                return found
            await asyncio.sleep(0.01)

    async def until_bound(self) -> None:
        await self.until(f"{ALL_PODS}/p", lambda pod: pod["spec"].get("nodeName") == "n")

    async def reserved_for(self) -> list[str]:
        claim = await self.server.get(f"{CLAIMS}/p-claim")
        return [consumer["name"] for consumer in claim.get("status", {}).get("reservedFor", ())]

    def messages(self) -> Counter[str]:
        """Writes of claims and pods."""
        wanted = ("PUT resourceclaims", "POST pods")
        return Counter({name: n for name, n in self.link.sent.items() if name.startswith(wanted)})


@asynccontextmanager
async def a_linked_cluster(device: dict[str, Any]) -> AsyncIterator[Scene]:
    """A node with a device, and a claim for it."""
    store = MemoryStore()
    async with (
        asyncio.timeout(60),
        LocalServer(store) as server,
        linked_components(server, store) as (link, components),
    ):
        amounts = {"cpu": "8", "memory": "8Gi", "pods": "100"}
        node = {"metadata": {"name": "n"}, "status": {"capacity": amounts, "allocatable": amounts}}
        pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": [device]}
        requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
        claim = {"metadata": {"name": "p-claim"}, "spec": {"devices": {"requests": requests}}}
        template = {"metadata": {"name": "t"}, "spec": {"spec": claim["spec"]}}
        await server.post("/api/v1/nodes", node)
        await server.post(f"{DRA}/deviceclasses", {"metadata": {"name": "c"}, "spec": {}})
        await server.post(f"{DRA}/resourceslices", {"metadata": {"name": "s"}, "spec": spec})
        await server.post(f"{DRA}/namespaces/default/resourceclaimtemplates", template)
        await server.post(CLAIMS, claim)
        await components.start()
        await until_known(components)
        yield Scene(server, link)


def before_first(
    patch: pytest.MonkeyPatch, request: tuple[str, str], act: Callable[[], Awaitable[object]]
) -> None:
    """Let another client act before the server answers the first request of this kind."""
    answer, (method, end) = LinkServer._answer, request
    left = [act]

    async def answered(server: LinkServer, frame: RequestFrame) -> int:
        if frame.method == method and frame.path.endswith(end) and left:
            await left.pop()()
        return await answer(server, frame)

    patch.setattr(LinkServer, "_answer", answered)


def test_a_conflict_of_the_claim_delays_the_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with a_linked_cluster({"name": "d"}) as scene:

            async def touch() -> None:
                patch = {"metadata": {"labels": {"touched": "yes"}}}
                merge = "application/merge-patch+json"
                await scene.server.ask("PATCH", f"{CLAIMS}/p-claim", patch, content_type=merge)

            before_first(monkeypatch, ("PUT", "/p-claim"), touch)
            await scene.pod()
            await scene.until_bound()

            assert await scene.reserved_for() == ["p"]
            assert scene.messages() == {
                IN_ONE_MESSAGE: 1,
                "PUT resourceclaims/NAME": 1,
                "POST pods/NAME/binding": 1,
            }

    asyncio.run(story())


def test_a_pod_that_is_gone_is_not_bound_and_its_claim_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        async with a_linked_cluster({"name": "d"}) as scene:

            async def delete() -> None:
                options = {"gracePeriodSeconds": 0}
                await scene.server.ask("DELETE", f"{ALL_PODS}/p", options)

            before_first(monkeypatch, ("POST", "/p/binding"), delete)
            await scene.pod()

            def is_released(claim: dict[str, Any]) -> bool:
                return not claim.get("status") and bool(scene.messages()[IN_ONE_MESSAGE])

            await scene.until(f"{CLAIMS}/p-claim", is_released)
            assert scene.messages()["POST pods/NAME/binding"] == 0

    asyncio.run(story())


def test_a_pod_that_waits_for_its_device_is_bound_after_that() -> None:
    async def story() -> None:
        device = {
            "name": "d",
            "bindingConditions": ["Programmed"],
            "bindingFailureConditions": ["Broken"],
            "bindsToNode": True,
        }
        async with a_linked_cluster(device) as scene:
            await scene.pod()
            claim = await scene.until(
                f"{CLAIMS}/p-claim", lambda claim: bool(claim.get("status", {}).get("allocation"))
            )
            assert scene.messages() == {"PUT resourceclaims/NAME": 1}
            (result,) = claim["status"]["allocation"]["devices"]["results"]
            names = {name: result[name] for name in ("driver", "pool", "device")}
            now = claim["metadata"]["creationTimestamp"]
            condition = {
                "type": "Programmed",
                "status": "True",
                "reason": "Done",
                "message": "",
                "lastTransitionTime": now,
            }
            claim["status"]["devices"] = [{**names, "conditions": [condition]}]
            await scene.server.ask("PUT", f"{CLAIMS}/p-claim/status", claim)
            await scene.until_bound()

            assert IN_ONE_MESSAGE not in scene.messages()
            assert scene.messages()["POST pods/NAME/binding"] == 1

    asyncio.run(story())
