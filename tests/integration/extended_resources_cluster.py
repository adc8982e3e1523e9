"""A cluster for tests of extended resources: API server and scheduler in one process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.client.transport import JSON, Query, Response
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.configuration import SchedulerConfiguration
from allot.scheduler.plugins.dynamic_resources.plugin import DynamicResources
from allot.testing.servers import TOKEN, LocalServer

GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
PODS = "/api/v1/namespaces/default/pods"
FINALIZER = "resource.kubernetes.io/delete-protection"

MAX_LOOKS = 10_000
"""How often it is looked, with pauses of 10 ms, before something is given up."""

Refuse = Callable[[str, str], bool]
"""Whether a request, by method and path, is answered with an error instead of being done."""


def nothing(_method: str, _path: str) -> bool:
    return False


class FaultyTransport(InProcessTransport):
    """Answers some requests with an error."""

    refuse: Refuse = staticmethod(nothing)
    before_binding: Callable[[], Awaitable[object]] | None = None
    """Awaited before a binding is sent."""
    is_done = False
    """Whether what is answered with an error was done all the same."""

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        if self.before_binding is not None and path.endswith("/binding"):
            await self.before_binding()
        refused = self.refuse(method, path)
        if not refused or self.is_done:
            answer = await super().request(method, path, query, body, content_type, headers)
        if refused:
            status = b'{"kind":"Status","status":"Failure","code":400,"reason":"BadRequest","message":"no"}'
            return Response(400, (), status)
        return answer


class Cluster:
    """An API server with a scheduler, and short ways to say what is in it."""

    def __init__(self, server: LocalServer, transport: FaultyTransport) -> None:
        self.server = server
        self.transport = transport
        self._tasks: list[asyncio.Task[None]] = []
        self.scheduler = self._start(transport)

    def _start(
        self, transport: FaultyTransport, later: timedelta = timedelta()
    ) -> SchedulerProcess:
        configuration = SchedulerConfiguration(initial_backoff_seconds=0.01)
        scheduler = SchedulerProcess(
            Client(transport), configuration, today=lambda: datetime.now(UTC) + later
        )
        self._tasks.append(asyncio.create_task(scheduler.run()))
        return scheduler

    def start_another(self, later: timedelta = timedelta()) -> None:
        """A scheduler beside those that run, one without faults and with another idea of the time."""
        self._start(FaultyTransport(self.server.server.app, TOKEN), later)

    async def stop(self) -> None:
        """End all schedulers, whatever they are doing."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    @contextlib.asynccontextmanager
    async def history(self) -> AsyncIterator[list[dict[str, Any]]]:
        """All that happens to claims meanwhile; to be read afterwards."""
        seen: list[dict[str, Any]] = []
        async with self.server.watch(CLAIMS) as stream:
            yield seen
            request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
            spec = {"devices": {"requests": [request]}}
            await self.server.post(CLAIMS, {"metadata": {"name": "the-end"}, "spec": spec})
            while (event := (await stream.take(1))[0])["object"]["metadata"]["name"] != "the-end":
                seen.append(event)

    async def add_class(self, name: str = "gpu", resource: str | None = GPU) -> None:
        spec: dict[str, Any] = {
            "selectors": [{"cel": {"expression": f"device.driver == '{name}.example.com'"}}]
        }
        if resource is not None:
            spec["extendedResourceName"] = resource
        await self.server.post(CLASSES, {"metadata": {"name": name}, "spec": spec})

    async def add_node(
        self, name: str, devices: int = 0, *, driver: str = "gpu", **plugin_resources: str
    ) -> None:
        """A node with devices; `plugin_resources` are what device plugins offer there."""
        await self.server.post("/api/v1/nodes", {"metadata": {"name": name}})
        await self.set_allocatable(name, plugin_resources)
        node = await self.server.get(f"/api/v1/nodes/{name}")
        node.get("spec", {}).pop("taints", None)
        assert (await self.server.ask("PUT", f"/api/v1/nodes/{name}", node)).code == 200
        if devices:
            await self.add_devices(name, devices, driver)

    async def set_allocatable(self, name: str, resources: Mapping[str, str]) -> None:
        node = await self.server.get(f"/api/v1/nodes/{name}")
        node["status"] = {
            "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110", **resources},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        assert (await self.server.ask("PUT", f"/api/v1/nodes/{name}/status", node)).code == 200

    async def add_devices(self, node: str, count: int, driver: str = "gpu") -> None:
        spec = {
            "driver": f"{driver}.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"{driver}-{number}"} for number in range(count)],
        }
        await self.server.post(SLICES, {"metadata": {"name": f"{node}-{driver}"}, "spec": spec})

    async def add_pod(
        self,
        name: str,
        *requests: Mapping[str, str],
        init: tuple[Mapping[str, str], ...] = (),
        **spec: Any,
    ) -> None:
        """A pod with a container `c0`, `c1`, … for each of `requests`; `i0`, … are init containers."""
        spec["containers"] = [_container(f"c{n}", one) for n, one in enumerate(requests)]
        if init:
            spec["initContainers"] = [_container(f"i{n}", one) for n, one in enumerate(init)]
        await self.server.post(PODS, {"metadata": {"name": name}, "spec": spec})

    @property
    def claims_created(self) -> float:
        labels = {
            "status": "success",
            "admin_access": "false",
            "owner_api_group": "",
            "owner_api_kind": "Pod",
        }
        name = "dynamic_resource_allocation_resourceclaim_creates_total"
        return self.scheduler.metrics.registry.get_sample_value(name, labels) or 0

    @property
    def allocations(self) -> int:
        """How often devices were searched for."""
        plugin = self.scheduler.profiles["default-scheduler"].plugin("DynamicResources")
        assert isinstance(plugin, DynamicResources)
        return plugin.allocations

    async def until_bound(self, count: int) -> None:
        for _ in range(MAX_LOOKS):
            pods = (await self.server.get(PODS))["items"]
            if sum("nodeName" in pod["spec"] for pod in pods) >= count:
                return
            await asyncio.sleep(0.01)
        raise AssertionError([message_of(pod) for pod in pods])

    async def pod(self, name: str) -> dict[str, Any]:
        return await self.server.get(f"{PODS}/{name}")

    async def claims(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = (await self.server.get(CLAIMS))["items"]
        return items

    async def bound(self, name: str) -> dict[str, Any]:
        """The pod, once it has a node."""
        return await self.until(name, lambda pod: "nodeName" in pod["spec"])

    async def refused(self, name: str, text: str) -> str:
        """What the pod's condition says, once it says this among other things."""
        return message_of(await self.until(name, lambda pod: text in message_of(pod)))

    async def until(self, name: str, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        pod: dict[str, Any] = {}
        for _ in range(MAX_LOOKS):
            pod = await self.pod(name)
            if is_so(pod):
                return pod
            await asyncio.sleep(0.01)
        raise AssertionError(pod)

    async def until_claims(self, count: int) -> list[dict[str, Any]]:
        for _ in range(MAX_LOOKS):
            claims = await self.claims()
            if len(claims) == count:
                return claims
            await asyncio.sleep(0.01)
        raise AssertionError(claims)

    async def remove_pod(self, name: str) -> None:
        """Delete a pod, and its claim as the controllers would."""
        claim = (await self.pod(name))["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
        options = {"gracePeriodSeconds": 0}
        assert (await self.server.ask("DELETE", f"{PODS}/{name}", options)).code == 200
        found = await self.server.get(f"{CLAIMS}/{claim}")
        found["metadata"]["finalizers"] = []
        assert (await self.server.ask("PUT", f"{CLAIMS}/{claim}", found)).code == 200
        assert (await self.server.ask("DELETE", f"{CLAIMS}/{claim}")).code == 200


def _container(name: str, requests: Mapping[str, str]) -> dict[str, Any]:
    extended = {resource: amount for resource, amount in requests.items() if "/" in resource}
    always = {"restartPolicy": "Always"} if requests.get("sidecar") else {}
    amounts = {resource: amount for resource, amount in requests.items() if resource != "sidecar"}
    resources = {"requests": amounts, "limits": extended}
    return {"name": name, "image": "image", "resources": resources, **always}


def message_of(pod: Mapping[str, Any]) -> str:
    """Why the pod is not scheduled, as far as it says."""
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message", ""))
    return ""


def mappings_of(pod: Mapping[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (one["containerName"], one["resourceName"], one["requestName"])
        for one in pod["status"]["extendedResourceClaimStatus"]["requestMappings"]
    }


def devices_of(claim: Mapping[str, Any]) -> dict[str, int]:
    """How many devices each request of the claim got."""
    counts: dict[str, int] = {}
    for result in claim["status"]["allocation"]["devices"]["results"]:
        counts[result["request"]] = counts.get(result["request"], 0) + 1
    return counts


@contextlib.asynccontextmanager
async def a_cluster() -> AsyncIterator[Cluster]:
    async with LocalServer() as server:
        cluster = Cluster(server, FaultyTransport(server.server.app, TOKEN))
        try:
            yield cluster
        finally:
            await cluster.stop()


def run(scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        async with a_cluster() as cluster, asyncio.timeout(120):
            await scenario(cluster)

    asyncio.run(main())
