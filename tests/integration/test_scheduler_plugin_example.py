"""The plugin of examples/scheduler-plugin, found by its entry point, schedules pods of a group together."""

from __future__ import annotations

import asyncio
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.configuration import read_configuration
from allot.testing.servers import TOKEN, LocalServer
from allot.testing.virtual_time import VirtualClock, run_in_virtual_time

EXAMPLE = Path(__file__).parents[2] / "examples" / "scheduler-plugin"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package as an installer leaves it: on the path, with the metadata of its entry points."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    metadata = tmp_path / f"allot_gang-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))
    yield
    sys.modules.pop("allot_gang", None)


class Stage:
    def __init__(self, server: LocalServer, clock: VirtualClock) -> None:
        self.server = server
        configuration = read_configuration(yaml.safe_load((EXAMPLE / "scheduler.yaml").read_text()))
        client = Client(InProcessTransport(server.server.app, TOKEN), clock=clock)
        self.process = SchedulerProcess(
            client, configuration, clock=clock.now, today=clock.whole_seconds
        )

    async def add_node(self) -> None:
        created = await self.server.post("/api/v1/nodes", {"metadata": {"name": "node"}})
        created["status"] = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}}
        await self.server.ask("PUT", "/api/v1/nodes/node/status", created)

    async def add_pod(self, name: str, group: str = "", size: int = 0) -> None:
        labels = {"gang.example.com/name": group, "gang.example.com/min": str(size)}
        body = {
            "metadata": {"name": name, "labels": labels if group else {}},
            "spec": {"containers": [{"name": "c", "image": "pause"}]},
        }
        await self.server.post(PODS, body)

    async def bound(self) -> list[str]:
        pods: list[dict[str, Any]] = (await self.server.get(PODS))["items"]
        return sorted(pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName"))

    async def message(self, pod: str) -> str:
        found = await self.server.get(f"{PODS}/{pod}")
        conditions = found.get("status", {}).get("conditions", [])
        return next((each["message"] for each in conditions if each["status"] == "False"), "")


@asynccontextmanager
async def running() -> AsyncIterator[Stage]:
    clock = VirtualClock()
    async with LocalServer(clock=clock.whole_seconds) as server:
        stage = Stage(server, clock)
        await stage.add_node()
        task = asyncio.create_task(stage.process.run())
        try:
            yield stage
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def test_a_group_is_bound_when_it_is_complete() -> None:
    async def story() -> None:
        async with running() as stage:
            await stage.add_pod("a", "training", 3)
            await stage.add_pod("b", "training", 3)
            await stage.add_pod("alone")
            await asyncio.sleep(10)
            assert await stage.bound() == ["alone"]
            assert {each.pod.name for each in stage.process.handle.waiting_pods} == {"a", "b"}

            await stage.add_pod("c", "training", 3)
            await asyncio.sleep(1)
            assert await stage.bound() == ["a", "alone", "b", "c"]

    run_in_virtual_time(story())


def test_an_incomplete_group_gives_its_place_back() -> None:
    async def story() -> None:
        async with running() as stage:
            await stage.add_pod("a", "training", 3)
            await stage.add_pod("b", "training", 3)
            await asyncio.sleep(35)

            assert await stage.bound() == []
            assert stage.process.cluster.assumed_count == 0
            messages = {name: await stage.message(name) for name in ("a", "b")}
            # Both began to wait in the same moment.
            late = "a" if "timeout" in messages["a"] else "b"
            other = "b" if late == "a" else "a"
            assert messages == {
                late: "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin Gang.",
                other: f"0/1 nodes are available: 1 pod {late} of group training was rejected.",
            }

    run_in_virtual_time(story())
