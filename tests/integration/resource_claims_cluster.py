"""A cluster for tests of the ResourceClaim controller: an API server, controllers, and a scheduler by hand."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from allot.client.client import Client
from allot.client.component_users import CONTROLLER_MANAGER, ComponentUser, controller_user
from allot.client.in_process import InProcessTransport
from allot.client.transport import JSON, NOT_RUN, Query, Response, Stream
from allot.controllers.manager import ControllerManager
from allot.controllers.resource_claims import ResourceClaimController
from allot.features import DEFAULTS, FeatureGates
from allot.testing.servers import LocalServer, ServerResponse

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
PODS = "/api/v1/namespaces/default/pods"
FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
MERGE = "application/merge-patch+json"
DEADLINE_SECONDS = 150
LAGS_SECONDS = (0, 0, 0.005, 0.03)
REFUSAL = "exceeded quota: q"

T = TypeVar("T")
Json = dict[str, Any]
Entries = Mapping[str, str]
"""Templates, or claims if they begin with `=`, by the names of a pod's entries."""


class RequestsInOrder:
    """As a link runs them: each if the one before succeeded."""

    def __init__(self, transport: InProcessTransport) -> None:
        self._transport = transport
        self._turn = asyncio.Lock()
        self._has_failed = False

    def request(self, *arguments: Any) -> Awaitable[Response]:
        return asyncio.create_task(self._request(*arguments))

    async def _request(self, *arguments: Any) -> Response:
        async with self._turn:
            if self._has_failed:
                return Response(NOT_RUN, (), b"{}")
            answer = await self._transport.request(*arguments)
            self._has_failed = answer.code >= 300
            return answer

    def stream(
        self, *arguments: Any, **rest: Any
    ) -> contextlib.AbstractAsyncContextManager[Stream]:
        raise AssertionError("only requests are sent in order")

    async def close(self) -> None:
        pass


class MortalTransport(InProcessTransport):
    """Lets a controller die at one of its writes, before or after it is done."""

    writes_left: int | None = None
    dies_before = True
    refuses_claims = False
    meeting: asyncio.Barrier | None = None
    """Where the first request for a claim waits for that of another controller."""
    chance: random.Random | None = None
    """If set, some watches are late, each by its own measure."""

    def __init__(self, server: LocalServer, user: ComponentUser) -> None:
        super().__init__(server.server.app, user)
        self.dead = asyncio.Event()
        self.requests: list[tuple[str, str]] = []

    def in_order(self, count: int) -> RequestsInOrder:
        return RequestsInOrder(self)

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [one for one in self.requests if one[0] != "GET" and "/events" not in one[1]]

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        if self.dead.is_set():
            await asyncio.Future()
        self.requests.append((method, path))
        if self.refuses_claims and (method, path) == ("POST", CLAIMS):
            status = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": REFUSAL}
            return Response(403, (), msgspec.json.encode(status))
        if self.meeting is not None and (method, path) == ("POST", CLAIMS):
            meeting, self.meeting = self.meeting, None
            await meeting.wait()
        is_last = False
        if method != "GET" and self.writes_left is not None:
            self.writes_left -= 1
            is_last = self.writes_left <= 0
        if is_last and self.dies_before:
            await self._die()
        answer = await super().request(method, path, query, body, content_type, headers)
        if is_last:
            await self._die()
        return answer

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, query: Query | None = None, **rest: Any
    ) -> AsyncIterator[Stream]:
        async with super().stream(path, query, **rest) as stream:
            yield Stream(stream.code, stream.headers, self._late(stream.chunks))

    async def _late(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        chance = self.chance
        measure = chance.choice(LAGS_SECONDS) if chance is not None else 0
        async for chunk in chunks:
            if chance is not None and measure:
                await asyncio.sleep(chance.random() * measure)
            yield chunk

    async def _die(self) -> None:
        self.dead.set()
        await asyncio.Future()


class Running:
    """One controller manager."""

    def __init__(self, server: LocalServer, gates: FeatureGates) -> None:
        self.watches = MortalTransport(server, CONTROLLER_MANAGER)
        """What informers and events go through."""
        self.transport = MortalTransport(server, controller_user(ResourceClaimController.name))
        self.manager = ControllerManager(
            Client(self.watches),
            [ResourceClaimController],
            gates,
            controller_client=lambda _name: Client(self.transport),
        )
        self._task = asyncio.create_task(self.manager.run())

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def metric(self, name: str, /, **labels: str) -> float | None:
        return self.manager.registry.get_sample_value(name, labels)


class Cluster:
    """Short ways to say what is in the cluster, and what a scheduler and a node do."""

    def __init__(self, server: LocalServer) -> None:
        self.server = server
        self._running: list[Running] = []

    # --- controllers ---

    def start(self, gates: FeatureGates = DEFAULTS) -> Running:
        running = Running(self.server, gates)
        self._running.append(running)
        return running

    async def stop(self) -> None:
        for running in self._running:
            await running.stop()
        self._running.clear()

    # --- users ---

    async def add_template(self, name: str = "t", **rest: Any) -> Json:
        request = {"name": "r", **rest.pop("request", {"exactly": {"deviceClassName": "gpu"}})}
        spec = {"spec": {"devices": {"requests": [request]}}, **rest}
        return await self.server.post(TEMPLATES, {"metadata": {"name": name}, "spec": spec})

    async def add_claim(self, name: str, **metadata: Any) -> Json:
        request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
        spec = {"devices": {"requests": [request]}}
        return await self.server.post(
            CLAIMS, {"metadata": {"name": name, **metadata}, "spec": spec}
        )

    async def add_pod(self, name: str = "p", claims: Entries | None = None, **spec: Any) -> Json:
        """A pod with these claims, one from template `t` unless told otherwise."""
        entries = []
        for entry, source in ({"gpu": "t"} if claims is None else claims).items():
            is_claim = source.startswith("=")
            kind = "resourceClaimName" if is_claim else "resourceClaimTemplateName"
            entries.append({"name": entry, kind: source.removeprefix("=")})
        container = {"name": "c", "image": "i"}
        whole = {"containers": [container], "resourceClaims": entries, **spec}
        return await self.server.post(PODS, {"metadata": {"name": name}, "spec": whole})

    async def delete(self, path: str, **options: Any) -> None:
        answer = await self.server.ask("DELETE", path, options or None)
        assert answer.code in (200, 404), answer

    async def delete_pod(self, name: str) -> None:
        """As if the node had confirmed that the pod is stopped."""
        await self.delete(f"{PODS}/{name}", gracePeriodSeconds=0)

    # --- scheduler and node ---

    async def patch(self, path: str, patch: Json) -> ServerResponse:
        return await self.server.ask("PATCH", path, patch, content_type=MERGE)

    async def allocate(self, name: str, *pods: Json) -> Json:
        """Give a claim a device of its own, and reserve it for pods; as it then is."""
        claim = await self.server.get(f"{CLAIMS}/{name}")
        metadata = {"finalizers": [FINALIZER]}
        assert (await self.patch(f"{CLAIMS}/{name}", {"metadata": metadata})).code == 200
        status = {"allocation": allocation_for(claim), "reservedFor": [consumer(p) for p in pods]}
        answer = await self.patch(f"{CLAIMS}/{name}/status", {"status": status})
        assert answer.code == 200, answer
        allocated: Json = answer.json
        return allocated

    async def bind(self, pod: Json, node: str = "n1") -> ServerResponse:
        name = pod["metadata"]["name"]
        target = {"kind": "Node", "name": node}
        body = {"metadata": {"name": name, "uid": pod["metadata"]["uid"]}, "target": target}
        return await self.server.ask("POST", f"{PODS}/{name}/binding", body)

    async def set_phase(self, name: str, phase: str) -> None:
        answer = await self.patch(f"{PODS}/{name}/status", {"status": {"phase": phase}})
        assert answer.code == 200, answer

    async def run_pod(self, name: str = "p") -> tuple[Json, list[str]]:
        """Schedule a pod whose claims are there; the names of these come along."""
        pod = await self.until_pod(name, has_its_claims)
        names = claims_of(pod)
        for claim in names:
            await self.allocate(claim, pod)
        assert (await self.bind(pod)).code == 201
        await self.set_phase(name, "Running")
        return pod, names

    # --- waiting ---

    async def pod(self, name: str = "p") -> Json:
        return await self.server.get(f"{PODS}/{name}")

    async def claim(self, name: str) -> Json | None:
        answer = await self.server.ask("GET", f"{CLAIMS}/{name}")
        found: Json | None = answer.json if answer.code == 200 else None
        return found

    async def claims(self) -> list[Json]:
        return list((await self.server.get(CLAIMS))["items"])

    async def until_pod(self, name: str, is_so: Callable[[Json], bool]) -> Json:
        async def look() -> Json | None:
            pod = await self.pod(name)
            return pod if is_so(pod) else None

        return await until(look)

    async def until_claim(self, name: str, is_so: Callable[[Json], bool]) -> Json:
        async def look() -> Json | None:
            claim = await self.claim(name)
            return claim if claim is not None and is_so(claim) else None

        return await until(look)

    async def until_gone(self, name: str) -> None:
        async def look() -> bool | None:
            return await self.claim(name) is None or None

        await until(look)

    async def until_event(self, reason: str) -> Json:
        async def look() -> Json | None:
            events = (await self.server.get("/apis/events.k8s.io/v1/events"))["items"]
            return next((event for event in events if event["reason"] == reason), None)

        return await until(look)


async def until(look: Callable[[], Awaitable[T | None]]) -> T:
    """What `look` finds, once it finds something. The test's deadline ends it."""
    while (found := await look()) is None:
        await asyncio.sleep(0.002)
    return found


def allocation_for(claim: Json) -> Json:
    """A device that only this claim ever has."""
    device = f"d-{claim['metadata']['uid'][:8]}"
    result = {"request": "r", "driver": "gpu.example.com", "pool": "p", "device": device}
    return {"devices": {"results": [result]}}


def consumer(pod: Json) -> Json:
    metadata = pod["metadata"]
    return {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}


def owner_of(pod: Json) -> Json:
    metadata = pod["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def told(pod: Json) -> dict[str, str]:
    """The claims that were made for a pod, by entry."""
    statuses: Sequence[Json] = pod["status"].get("resourceClaimStatuses", ())
    return {one["name"]: one.get("resourceClaimName", "") for one in statuses}


def claims_of(pod: Json) -> list[str]:
    made = told(pod)
    entries = pod["spec"].get("resourceClaims", ())
    return [entry.get("resourceClaimName") or made[entry["name"]] for entry in entries]


def has_its_claims(pod: Json) -> bool:
    entries = pod["spec"].get("resourceClaims", ())
    wanted = {entry["name"] for entry in entries if "resourceClaimTemplateName" in entry}
    return wanted <= told(pod).keys()


def reserved_for(claim: Json) -> list[str]:
    """The uids of a claim's consumers."""
    return [one["uid"] for one in claim.get("status", {}).get("reservedFor", ())]


def is_allocated(claim: Json) -> bool:
    return "allocation" in claim.get("status", {})


def run(scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        async with LocalServer() as server, asyncio.timeout(DEADLINE_SECONDS):
            cluster = Cluster(server)
            try:
                await scenario(cluster)
            finally:
                await cluster.stop()

    asyncio.run(main())
