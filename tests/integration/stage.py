"""Controllers and an API server in one process, in virtual time: hours pass in milliseconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from allot.client.client import Client
from allot.client.clock import LoopClock
from allot.client.component_users import CONTROLLER_MANAGER, ComponentUser, controller_user
from allot.client.in_process import InProcessTransport
from allot.controllers.manager import ControllerManager, Factory
from allot.testing.servers import LocalServer
from allot.testing.virtual_time import run_in_virtual_time

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
DRA = "/apis/resource.k8s.io/v1"
CLAIMS = f"{DRA}/namespaces/default/resourceclaims"
SLICES = f"{DRA}/resourceslices"
RULES = f"{DRA}/devicetaintrules"


class StageClock(LoopClock):
    """Begins with the real day, because the server stamps that; goes on as the loop does."""

    def __init__(self) -> None:
        self._began = datetime.now(UTC)

    def today(self) -> datetime:
        return self._began + timedelta(seconds=self.now())


class Stage:
    """What stories are told with."""

    def __init__(self, server: LocalServer, factories: Iterable[Factory]) -> None:
        self.server = server
        self.clock = StageClock()
        self.manager = ControllerManager(
            self._client(CONTROLLER_MANAGER),
            tuple(factories),
            controller_client=lambda name: self._client(controller_user(name)),
        )
        self._running: asyncio.Task[None] | None = None

    def _client(self, user: ComponentUser) -> Client:
        return Client(InProcessTransport(self.server.server.app, user), clock=self.clock)

    async def start(self) -> None:
        self._running = asyncio.create_task(self.manager.run())
        await self.until(lambda: self.manager.is_ready)

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def until(self, holds: Callable[[], Any], seconds: float = 120.0) -> None:
        """Virtual seconds: nothing here takes longer because a machine is slow."""
        end = self.clock.now() + seconds
        while not (await found if isinstance(found := holds(), Awaitable) else found):
            assert self.clock.now() < end, f"not within {seconds} s"
            await asyncio.sleep(0.05)

    def moment(self, seconds: float = 0) -> str:
        """A time from now, as the API writes it."""
        return (self.clock.today() + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    # --- the server ---

    async def patch(self, path: str, body: Any) -> dict[str, Any]:
        kind = "application/merge-patch+json"
        answer = await self.server.ask("PATCH", path, body, content_type=kind)
        assert answer.code == 200, answer
        patched: dict[str, Any] = answer.json
        return patched

    async def find(self, path: str) -> dict[str, Any] | None:
        answer = await self.server.ask("GET", path)
        found: dict[str, Any] = answer.json
        return found if answer.code == 200 else None

    async def notes(self, reason: str) -> list[str]:
        listed = await self.server.get("/api/v1/events")
        return [event["message"] for event in listed["items"] if event["reason"] == reason]

    async def pod(self, name: str, node: str = "", **spec: Any) -> dict[str, Any]:
        spec |= {"containers": [{"name": "m", "image": "i"}]} | ({"nodeName": node} if node else {})
        body = {"metadata": {"name": name}, "spec": spec}
        return await self.server.post(PODS, body)

    async def node(self, name: str, **ready: str) -> dict[str, Any]:
        """A node as a kubelet registers it: ready, unless told otherwise."""
        await self.server.post(NODES, {"metadata": {"name": name}})
        return await self.report(name, **ready)

    async def report(self, name: str, status: str = "True") -> dict[str, Any]:
        moment = self.moment()
        condition = {
            "type": "Ready",
            "status": status,
            "reason": "KubeletReady",
            "lastHeartbeatTime": moment,
            "lastTransitionTime": moment,
        }
        return await self.patch(f"{NODES}/{name}/status", {"status": {"conditions": [condition]}})

    async def renew(self, node: str) -> None:
        moment = self.clock.today().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": node, "renewTime": moment}
        path = f"{LEASES}/{node}"
        if await self.find(path) is None:
            await self.server.post(LEASES, {"metadata": {"name": node}, "spec": spec})
        else:
            await self.patch(path, {"spec": spec})

    async def pod_leaves(self, name: str) -> bool:
        found = await self.find(f"{PODS}/{name}")
        return found is None or "deletionTimestamp" in found["metadata"]

    async def condition(self, path: str, type_: str) -> dict[str, Any]:
        found = await self.server.get(path)
        conditions = found.get("status", {}).get("conditions") or ()
        return next((entry for entry in conditions if entry["type"] == type_), {})


def play(story: Callable[[Stage], Awaitable[None]], *factories: Factory) -> None:
    """Run a story with these controllers; it starts them itself."""

    async def run() -> None:
        async with LocalServer() as server:
            stage = Stage(server, factories)
            try:
                await story(stage)
            finally:
                await stage.stop()

    run_in_virtual_time(run())
