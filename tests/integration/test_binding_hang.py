"""A device that never becomes ready, end to end: API server, scheduler and binding controller, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.controllers.binding import (
    AttemptLimits,
    BindingController,
    BindingMetrics,
    BindingSettings,
    Quarantine,
    TaintRules,
)
from allot.controllers.binding.simulation import SimulatedAttacher, parse_script
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.configuration import read_configuration
from allot.testing.servers import TOKEN, LocalServer
from allot.testing.virtual_time import VirtualClock, run_in_virtual_time

EXAMPLES = Path(__file__).parents[2] / "examples" / "binding-conditions"
DRIVER = "fpga.example.com"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
CLAIM = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/transcoder"
POD = "/api/v1/namespaces/default/pods/transcoder"
PATHS = {
    "Node": "/api/v1/nodes",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaim": CLAIM.rpartition("/")[0],
    "Pod": POD.rpartition("/")[0],
}
TIMEOUT_SECONDS = 10


class Stage:
    """The example's cluster, with all components that take part."""

    def __init__(
        self, server: LocalServer, script: str, settings: BindingSettings, taints: bool
    ) -> None:
        self.server = server
        self.clock = VirtualClock()
        self.told: list[str] = []
        self.metrics = BindingMetrics()
        client = Client(InProcessTransport(server.server.app, TOKEN), clock=self.clock)
        configuration = read_configuration(
            yaml.safe_load((EXAMPLES / "scheduler.yaml").read_text())
        )
        self.scheduler = SchedulerProcess(
            client, configuration, clock=self.clock.now, today=self.clock.whole_seconds
        )
        self.controller = BindingController(
            client,
            DRIVER,
            SimulatedAttacher(parse_script(script), report=self.told.append, clock=self.clock),
            settings,
            quarantine=TaintRules(client, DRIVER, seconds=600) if taints else Quarantine(),
            observer=self.metrics,
        )

    async def apply(self) -> None:
        for document in yaml.safe_load_all((EXAMPLES / "fpga.yaml").read_text()):
            created = await self.server.post(PATHS[document["kind"]], document)
            if document["kind"] == "Node":
                created["status"] = document["status"]
                path = f"{PATHS['Node']}/{document['metadata']['name']}/status"
                await self.server.ask("PUT", path, created)

    async def device(self) -> str:
        claim = await self.server.get(CLAIM)
        allocation = (claim.get("status") or {}).get("allocation")
        return allocation["devices"]["results"][0]["device"] if allocation else ""

    async def node(self) -> str:
        name: str = (await self.server.get(POD))["spec"].get("nodeName", "")
        return name

    async def notes(self) -> str:
        """What users were told about failed attempts."""
        listed = await self.server.get("/api/v1/namespaces/default/events")
        failed = [each for each in listed["items"] if each["reason"] == "FailedScheduling"]
        return "; ".join(each["message"] for each in failed)

    async def rules(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.server.get(RULES))["items"]
        return found


@asynccontextmanager
async def a_stage(
    script: str,
    settings: BindingSettings,
    *,
    taints: bool = True,
) -> AsyncIterator[Stage]:
    async with LocalServer() as server:
        stage = Stage(server, script, settings, taints)
        await stage.apply()
        tasks = [
            asyncio.create_task(stage.scheduler.run()),
            asyncio.create_task(stage.controller.run()),
        ]
        try:
            yield stage
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def test_a_device_that_hangs_is_given_up_and_not_picked_again() -> None:
    async def main() -> None:
        settings = BindingSettings(hang_seconds=5)
        async with a_stage("fpga-0: hang; ready after 2s", settings) as stage:
            await asyncio.sleep(TIMEOUT_SECONDS - 1)
            assert (await stage.device(), await stage.node()) == ("fpga-0", "")
            await asyncio.sleep(1.5)
            assert "device binding timeout: claim=transcoder" in await stage.notes()
            (rule,) = await stage.rules()
            assert rule["spec"]["deviceSelector"]["device"] == "fpga-0"
            reason = rule["metadata"]["annotations"][f"{DRIVER}/reason"]
            assert reason.startswith("AttachHung: not ready after ")
            await asyncio.sleep(4)
            assert (await stage.device(), await stage.node()) == ("fpga-1", "server-1")
            assert any("fpga-0" in line and "detach" in line for line in stage.told), stage.told
            quarantined = stage.metrics.quarantines.labels(DRIVER, "success")
            assert quarantined._value.get() == 1
            await asyncio.sleep(601)
            assert await stage.rules() == []

    run_in_virtual_time(main())


def test_a_controller_that_gives_up_first_says_why() -> None:
    async def main() -> None:
        settings = BindingSettings(AttemptLimits(attach_seconds=2, max_attempts=2))
        async with a_stage("fpga-0: hang; ready after 1s", settings) as stage:
            await asyncio.sleep(TIMEOUT_SECONDS - 2)
            assert "reason=AttachTimedOut" in await stage.notes()
            assert len(await stage.rules()) == 1
            await asyncio.sleep(5)
            assert (await stage.device(), await stage.node()) == ("fpga-1", "server-1")

    run_in_virtual_time(main())


def test_without_a_quarantine_the_device_is_tried_again() -> None:
    """Each attempt has its own time. In between the pod avoids the device for a while, each time longer."""

    async def main() -> None:
        settings = BindingSettings(hang_seconds=None)
        async with a_stage("hang", settings, taints=False) as stage:
            seen = set()
            avoided_seconds = 30 + 60
            for _ in range(4 * TIMEOUT_SECONDS + avoided_seconds):
                await asyncio.sleep(1)
                claim = await stage.server.get(CLAIM)
                if allocation := (claim.get("status") or {}).get("allocation"):
                    seen.add(allocation["allocationTimestamp"])
                assert await stage.node() == ""
            assert len(seen) >= 3
            assert await stage.rules() == []

    run_in_virtual_time(main())
