"""A small cluster in virtual time in which pods wait for devices, and everything that can happen to them.

The scheduler and the API server are the real ones. The parts of others (the controller that makes devices ready, the
one that takes reservations of deleted pods back) are played as functions of the world.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.client.transport import Response, Stream
from allot.features import DEFAULTS, FeatureGates
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.configuration import ProfileConfiguration, SchedulerConfiguration
from allot.testing.manifests import a_device_manifest
from allot.testing.servers import TOKEN, LocalServer, ServerResponse
from allot.testing.virtual_time import VirtualClock, settled

DRIVER: Final = "fpga.example.com"
BASE: Final = "/apis/resource.k8s.io/v1"
CLAIMS: Final = f"{BASE}/namespaces/default/resourceclaims"
SLICES: Final = f"{BASE}/resourceslices"
RULES: Final = f"{BASE}/devicetaintrules"
PODS: Final = "/api/v1/namespaces/default/pods"
TIMEOUT_SECONDS: Final = 60
NODES: Final = ("n1", "n2")
DEVICES: Final = ("fpga-0", "fpga-1")
"""Of each node."""
READY: Final = "Programmed"
FAILED: Final = "Broken"

Json = dict[str, Any]


class Severable(InProcessTransport):
    """A connection that can be cut. What was sent before is done, but the answer is lost."""

    def __init__(self, server: LocalServer) -> None:
        super().__init__(server.server.app, TOKEN)
        self._is_cut = False

    async def request(self, *args: Any, **options: Any) -> Response:
        await self._stop_if_cut()
        sent = asyncio.ensure_future(super().request(*args, **options))
        sent.add_done_callback(lambda done: done.cancelled() or done.exception())
        response = await asyncio.shield(sent)
        await self._stop_if_cut()
        return response

    @asynccontextmanager
    async def stream(self, *args: Any, **options: Any) -> AsyncIterator[Stream]:
        await self._stop_if_cut()
        async with super().stream(*args, **options) as stream:
            yield stream

    async def _stop_if_cut(self) -> None:
        if self._is_cut:
            await asyncio.Event().wait()

    async def cut(self) -> None:
        self._is_cut = True
        await self.close()


class World:
    """A cluster with two nodes of two devices each, unless told otherwise."""

    def __init__(
        self, server: LocalServer, gates: FeatureGates = DEFAULTS, timeout: str = ""
    ) -> None:
        self.server = server
        self.clock = VirtualClock()
        timeout = timeout or f"{TIMEOUT_SECONDS}s"
        args = {"DynamicResources": {"bindingTimeout": timeout}}
        self._configuration = SchedulerConfiguration(profiles=(ProfileConfiguration(args=args),))
        self._gates = gates
        self._dead: list[asyncio.Task[None]] = []
        self._start_version = ""

    # --- the scheduler's life ---

    def start(self) -> None:
        self._transport = Severable(self.server)
        self.scheduler = SchedulerProcess(
            Client(self._transport, clock=self.clock),
            self._configuration,
            self._gates,
            clock=self.clock.now,
            today=self.clock.whole_seconds,
        )
        self._running = asyncio.create_task(self.scheduler.run())

    async def kill(self) -> None:
        """As by a signal that cannot be caught: nothing is written any more."""
        await self._transport.cut()
        self._running.cancel()
        self._dead.append(self._running)

    async def end(self) -> None:
        await self.kill()
        await asyncio.gather(*self._dead, return_exceptions=True)

    # --- what is there ---

    async def build(self, *conditions: str) -> None:
        """Nodes with devices that need these conditions."""
        await self.server.post(f"{BASE}/deviceclasses", {"metadata": {"name": "fpga"}, "spec": {}})
        for node in NODES:
            created = await self.server.post("/api/v1/nodes", {"metadata": {"name": node}})
            created["status"] = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}}
            await self.server.ask("PUT", f"/api/v1/nodes/{node}/status", created)
            await self.publish(node, [device_with(name, *conditions) for name in DEVICES])
        listed = await self.server.get(CLAIMS)
        self._start_version = listed["metadata"]["resourceVersion"]

    async def publish(self, node: str, devices: list[Json]) -> None:
        """The devices that a node has from now on."""
        found = await self.server.ask("GET", f"{SLICES}/{node}")
        generation = 1
        if found.code == 200:
            generation = found.json["spec"]["pool"]["generation"] + 1
            await self.server.ask("DELETE", f"{SLICES}/{node}")
        pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        await self.server.post(SLICES, {"metadata": {"name": node}, "spec": spec})

    async def claim(self, name: str) -> None:
        request = {"name": "r", "exactly": {"deviceClassName": "fpga"}}
        body = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        await self.server.post(CLAIMS, body)

    async def pod(self, name: str, *claims: str, cpu: str = "1") -> None:
        entries = [{"name": claim, "resourceClaimName": claim} for claim in claims]
        container = {"name": "m", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        spec = {"containers": [container], "resourceClaims": entries}
        await self.server.post(PODS, {"metadata": {"name": name}, "spec": spec})

    async def taint(self, device: str) -> None:
        taint = {"key": "example.com/broken", "effect": "NoSchedule"}
        spec = {"deviceSelector": {"driver": DRIVER, "device": device}, "taint": taint}
        await self.server.ask("POST", RULES, {"metadata": {"name": device}, "spec": spec})

    # --- looking ---

    async def find(self, path: str) -> Json | None:
        answer = await self.server.ask("GET", path)
        found: Json | None = answer.json if answer.code == 200 else None
        return found

    async def claims(self) -> list[Json]:
        found: list[Json] = (await self.server.get(CLAIMS))["items"]
        return found

    async def status(self, claim: str) -> Json:
        found: Json = (await self.server.get(f"{CLAIMS}/{claim}")).get("status") or {}
        return found

    async def why(self, pod: str) -> str:
        """What the pod's condition says about its last attempt."""
        found = await self.server.get(f"{PODS}/{pod}")
        conditions = found["status"].get("conditions", [])
        return next((each["message"] for each in conditions if each.get("message")), "")

    async def pods(self) -> list[Json]:
        found: list[Json] = (await self.server.get(PODS))["items"]
        return found

    async def allocation(self, claim: str) -> Json | None:
        found = await self.find(f"{CLAIMS}/{claim}")
        return allocation_of(found) if found else None

    async def node_of(self, pod: str) -> str:
        found = await self.server.get(f"{PODS}/{pod}")
        name: str = found["spec"].get("nodeName", "")
        return name

    async def events(self, reason: str) -> list[str]:
        listed = await self.server.get("/api/v1/namespaces/default/events")
        return [event["message"] for event in listed["items"] if event["reason"] == reason]

    async def until(self, holds: Callable[[], Awaitable[Any]], seconds: float = 120.0) -> None:
        """Virtual seconds, so a generous limit costs nothing."""
        async with asyncio.timeout(seconds):
            while not await holds():
                await asyncio.sleep(0.05)

    # --- what others do to claims ---

    async def change(self, claim: str, change: Callable[[Json], Json | None]) -> None:
        """Change a claim's status as it is now; None leaves it. Others may be quicker: then again."""
        for _ in range(20):
            found = await self.find(f"{CLAIMS}/{claim}")
            wanted = change(found) if found else None
            if wanted is None:
                return
            answer = await self.server.ask("PUT", f"{CLAIMS}/{claim}/status", wanted)
            if answer.code != 409:
                assert answer.code in (200, 404), answer
                return
        raise AssertionError("another client is always faster")

    async def set_condition(self, claim: str, type_: str, status: str = "True") -> None:
        """What the devices' controller says; nothing if it has no device to speak of."""
        await self.change(claim, lambda found: with_condition(found, type_, status))

    async def deallocate(self, claim: str) -> None:
        await self.change(claim, lambda found: {**found, "status": {}})

    async def label(self, claim: str) -> None:
        patch = {"metadata": {"labels": {"touched": str(self.clock.now())}}}
        await self.server.ask(
            "PATCH", f"{CLAIMS}/{claim}", patch, content_type="application/merge-patch+json"
        )

    async def delete(self, path: str) -> ServerResponse:
        return await self.server.ask("DELETE", path, {"gracePeriodSeconds": 0})

    async def remove_stale_reservations(self) -> None:
        """What the controller of claims does: free what belongs to pods that are gone, let deleted claims go."""
        pods = {pod["metadata"]["uid"] for pod in await self.pods()}

        def without_gone(found: Json) -> Json | None:
            before = found.get("status", {}).get("reservedFor", [])
            after = [consumer for consumer in before if consumer["uid"] in pods]
            is_unwanted = bool(found["metadata"].get("deletionTimestamp")) and not after
            if before == after and not (is_unwanted and allocation_of(found)):
                return None
            return {**found, "status": {**found["status"], "reservedFor": after} if after else {}}

        for claim in await self.claims():
            await self.change(claim["metadata"]["name"], without_gone)
        for claim in await self.claims():
            if claim["metadata"].get("deletionTimestamp") and not allocation_of(claim):
                claim["metadata"]["finalizers"] = []
                await self.server.ask("PUT", f"{CLAIMS}/{claim['metadata']['name']}", claim)

    # --- what was ---

    async def history(self) -> list[tuple[str, Json]]:
        """All changes of claims and pods, in order, with what kind of change it was."""
        changes: list[tuple[int, str, Json]] = []
        for path in (CLAIMS, PODS):
            listed = await self.server.get(path)
            end = int(listed["metadata"]["resourceVersion"])
            since = self._start_version
            async with self.server.watch(path, timeoutSeconds="1", resourceVersion=since) as stream:
                while (event := await stream.next()) is not None:
                    version = int(event["object"]["metadata"]["resourceVersion"])
                    if version <= end:
                        changes.append((version, event["type"], event["object"]))
        changes.sort(key=lambda change: change[0])
        return [(type_, changed) for _, type_, changed in changes]


@asynccontextmanager
async def a_world(
    *conditions: str,
    gates: FeatureGates = DEFAULTS,
    server_gates: FeatureGates = DEFAULTS,
    timeout: str = "",
) -> AsyncIterator[World]:
    """A world whose scheduler runs."""
    async with LocalServer(gates=server_gates) as server:
        world = World(server, gates, timeout)
        await world.build(*(conditions or (READY,)))
        world.start()
        await settled()
        try:
            yield world
        finally:
            await world.end()


def device_with(name: str, *conditions: str) -> Json:
    return a_device_manifest(
        name, binding_conditions=conditions, binding_failure_conditions=[FAILED]
    )


def allocation_of(claim: Json) -> Json | None:
    found: Json | None = (claim.get("status") or {}).get("allocation")
    return found


def results_of(claim: Json) -> list[Json]:
    allocation = allocation_of(claim)
    found: list[Json] = allocation["devices"]["results"] if allocation else []
    return found


def with_condition(claim: Json, type_: str, status: str) -> Json | None:
    """The claim with a condition of all its devices set."""
    results = results_of(claim)
    if not results:
        return None
    condition = {
        "type": type_,
        "status": status,
        "reason": "Because",
        "message": "of that",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    known = {device_id(entry): entry for entry in claim["status"].get("devices", [])}
    devices = []
    for result in results:
        entry = known.get(device_id(result)) or {
            name: result[name] for name in ("driver", "pool", "device")
        }
        others = [each for each in entry.get("conditions", []) if each["type"] != type_]
        devices.append({**entry, "conditions": [*others, condition]})
    return {**claim, "status": {**claim["status"], "devices": devices}}


def device_id(entry: Json) -> tuple[str, str]:
    return entry["pool"], entry["device"]


def is_ready(claim: Json) -> bool:
    """Whether all devices of the claim can be used."""
    true = {
        (device_id(entry), condition["type"])
        for entry in (claim.get("status") or {}).get("devices", [])
        for condition in entry.get("conditions", [])
        if condition["status"] == "True"
    }
    results = results_of(claim)
    return bool(results) and all(
        all((device_id(result), name) in true for name in result.get("bindingConditions", []))
        and not any(
            (device_id(result), name) in true for name in result.get("bindingFailureConditions", [])
        )
        for result in results
    )


def claims_of(pod: Json) -> Iterator[str]:
    for entry in pod["spec"].get("resourceClaims", []):
        yield entry["resourceClaimName"]


def is_reserved_for(claim: Json, pod: Json) -> bool:
    consumers = (claim.get("status") or {}).get("reservedFor", [])
    return any(consumer["uid"] == pod["metadata"]["uid"] for consumer in consumers)
