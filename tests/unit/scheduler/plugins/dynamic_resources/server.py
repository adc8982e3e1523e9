"""An API server with claims, and a way to it on which things can happen between two requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from allot.api.claims import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from allot.api.identities import ObjectKey
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.client.resources import RESOURCE_CLAIMS
from allot.client.retries import NEVER
from allot.client.transport import JSON, Query, Response, Stream, Transport
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import DRIVER, a_claim
from allot.testing.servers import TOKEN, LocalServer
from tests.unit.scheduler.plugins.dynamic_resources.claims import a_pod_with_claims

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
Interference = Callable[[], Awaitable[object]]


class Disturbed:
    """A transport that notes what is asked, and lets others act before or after requests."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.asked: list[str] = []
        """Method and last part of the path of every request."""
        self.before: dict[int, Interference] = {}
        self.after: dict[int, Interference] = {}
        """By number of the request, from 1 on."""

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        self.asked.append(f"{method} {path.rsplit('/', 1)[-1]}")
        number = len(self.asked)
        if number in self.before:
            await self.before[number]()
        response = await self._transport.request(method, path, query, body, content_type, headers)
        if number in self.after:
            await self.after[number]()
        return response

    def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        idle_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AbstractAsyncContextManager[Stream]:
        return self._transport.stream(path, query, idle_seconds=idle_seconds, headers=headers)

    async def close(self) -> None:
        await self._transport.close()


class Scene(NamedTuple):
    """A server, a client that is watched, and one that is not."""

    server: LocalServer
    client: Client
    way: Disturbed
    others: Client

    async def claim(self, name: str = "claim", **fields: Any) -> ResourceClaim:
        """A new claim."""
        return await self.others.create(RESOURCE_CLAIMS, a_claim(name=name, **fields))

    async def stored(self, name: str = "claim") -> ResourceClaim:
        return await self.others.get(RESOURCE_CLAIMS, ObjectKey("default", name))

    async def pod(self, name: str = "pod", *claims: str) -> PodInfo:
        """A new pod, as the scheduler sees it."""
        spec = a_pod_with_claims(*claims, pod=name).pod.data["spec"]
        spec["containers"] = [{"name": "c", "image": "i"}]
        made = await self.server.post(
            "/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec}
        )
        return a_pod_with_claims(*claims, pod=name, metadata={"uid": made["metadata"]["uid"]})

    async def bind(self, pod: PodInfo, node: str = "node-1") -> None:
        await self.others.bind(pod.key, pod.uid, node)

    async def touch(self, name: str = "claim") -> None:
        """Another client labels the claim."""
        key = ObjectKey("default", name)
        labels = {"touched": str(len(self.way.asked))}
        await self.others.patch(RESOURCE_CLAIMS, key, {"metadata": {"labels": labels}})

    async def delete(self, name: str = "claim") -> None:
        await self.server.ask("DELETE", f"{CLAIMS}/{name}")

    async def allocate(
        self, allocation: AllocationResult | None, *reserved_for: PodInfo, name: str = "claim"
    ) -> ResourceClaim:
        """Another scheduler gives the claim its devices, or takes them away."""
        claim = await self.stored(name)
        consumers = tuple(
            ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
            for pod in reserved_for
        )
        status = msgspec.structs.replace(
            claim.status, allocation=allocation, reserved_for=consumers
        )
        wanted = msgspec.structs.replace(claim, status=status)
        return await self.others.update_status(RESOURCE_CLAIMS, wanted)


@asynccontextmanager
async def a_claim_write_scene() -> AsyncIterator[Scene]:
    async with LocalServer() as server:
        await server.post(
            "/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": DRIVER}, "spec": {}}
        )
        transport = InProcessTransport(server.server.app, TOKEN)
        way = Disturbed(transport)
        yield Scene(server, Client(way, retry=NEVER), way, Client(transport))
