"""What simulated nodes cost in one process: heartbeats, and pods with prepared claims.

Run it with `python bench/nodes/simulation.py [--nodes 2000] [--devices 8] [--pods 2000] [--seconds 60] [--plugin-dir]`.
`allot nodes` is a process of its own, and only its time and memory count, not those of the API server and of those who create
pods. Nodes and their devices are created; then nothing happens but heartbeats; then pods start and end, without and with claims: the
difference is what checking, preparing and unpreparing claims costs. With --plugin-dir drivers could register on every node.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.client.client import Client
from allot.client.connection import connect
from allot.client.options import DeleteOptions, Scope
from allot.client.resources import PODS, RESOURCE_CLAIMS

DRIVER = "gpu.example.com"
AT_ONCE = 32
START_SECONDS = 120.0


class Took(NamedTuple):
    """Real time, and CPU time of the simulation."""

    seconds: float
    cpu_seconds: float

    def __str__(self) -> str:
        return (
            f"{self.seconds:6.1f} s, {self.cpu_seconds:6.2f} s CPU "
            f"({self.cpu_seconds / self.seconds:.2f} cores)"
        )


class Simulation:
    """`allot nodes`, and what it has used."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._place = Path("/proc") / str(process.pid)

    def cpu_seconds(self) -> float:
        fields = (self._place / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_megabytes(self) -> float:
        lines = (self._place / "status").read_text().splitlines()
        (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
        return int(peak) / 1024

    async def timed(self, work: Awaitable[Any]) -> Took:
        start, cpu = time.perf_counter(), self.cpu_seconds()
        await work
        return Took(time.perf_counter() - start, self.cpu_seconds() - cpu)


@asynccontextmanager
async def allot(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command that has said that it is ready."""
    program = "from allot.cli.main import run; raise SystemExit(run())"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, *arguments, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            while b"ready" not in (line := await process.stdout.readline()):
                assert line, "it ended"
        yield process
    finally:
        process.terminate()
        await process.wait()


async def each(count: int, work: Callable[[int], Awaitable[None]]) -> None:
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with limit:
            await work(number)

    await asyncio.gather(*map(one, range(count)))


class Load:
    """Pods on nodes, with or without claims."""

    def __init__(self, client: Client, nodes: int, name: str, *, has_claims: bool) -> None:
        self._client = client
        self._nodes = nodes
        self._name = name
        self.has_claims = has_claims

    def key(self, number: int) -> ObjectKey:
        return ObjectKey("default", f"{self._name}-{number}")

    async def create(self, number: int) -> None:
        name, node = self.key(number).name, f"server-{number % self._nodes}"
        spec: dict[str, Any] = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        if self.has_claims:
            spec["resourceClaims"] = [{"name": "x", "resourceClaimName": name}]
            spec["containers"][0]["resources"] = {"claims": [{"name": "x"}]}
        pod = await self._client.create(
            PODS, Pod({"metadata": {"namespace": "default", "name": name}, "spec": spec})
        )
        if self.has_claims:
            await self._allocate(name, node, pod.metadata.uid)

    async def _allocate(self, name: str, node: str, uid: str) -> None:
        result = {"request": "r", "driver": DRIVER, "pool": node, "device": f"gpu-{name}"}
        status = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": uid}],
        }
        await self._client.patch(
            RESOURCE_CLAIMS, ObjectKey("default", name), {"status": status}, subresource="status"
        )

    async def create_claim(self, number: int) -> None:
        request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
        raw = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"namespace": "default", "name": self.key(number).name},
            "spec": {"devices": {"requests": [request]}},
        }
        claim = RESOURCE_CLAIMS.codec.decode(msgspec.json.encode(raw))
        await self._client.create(RESOURCE_CLAIMS, claim)

    async def delete(self, number: int) -> None:
        await self._client.delete(PODS, self.key(number), DeleteOptions())

    async def until(self, count: int, phase: str) -> None:
        """Wait until so many pods are in a phase; empty: until so many exist."""
        while True:
            pods = (await self._client.list(PODS, Scope(namespace="default"))).items
            mine = [pod for pod in pods if pod.metadata.name.startswith(f"{self._name}-")]
            if sum(not phase or pod.phase == phase for pod in mine) == count:
                return
            await asyncio.sleep(0.5)


async def run(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        hardware = directory / "bench.yaml"
        hardware.write_text(yaml.safe_dump(description(options)))
        data = directory / "data"
        up = ("up", "--data-dir", str(data), "--port", "0", "--storage", "memory")
        kubeconfig = data / "kubeconfig"
        nodes = ["nodes", "--kubeconfig", str(kubeconfig), "--hardware", str(hardware)]
        if options.plugin_dir:
            nodes += ["--plugin-dir", str(directory / "plugins")]
        print(f"{options.nodes} nodes with {options.devices} devices")
        async with allot(*up, "--no-scheduler", "--no-controllers", "--no-nodes"):
            start = time.perf_counter()
            async with allot(*nodes) as process:
                simulation = Simulation(process)
                took = Took(time.perf_counter() - start, simulation.cpu_seconds())
                print(f"  start                    {took}")
                client = connect(kubeconfig, user_agent="bench")
                await measure(options, simulation, client)
                await client.close()


def description(options: argparse.Namespace) -> dict[str, Any]:
    devices = {"name": "gpu-{i}", "count": options.devices}
    return {
        "name": "bench",
        "nodes": {"count": options.nodes, "name": "server-{node}"},
        "pools": [{"driver": DRIVER, "devices": [devices]}],
    }


async def measure(options: argparse.Namespace, simulation: Simulation, client: Client) -> None:
    await asyncio.sleep(15)  # all statuses are written
    idle = await simulation.timed(asyncio.sleep(options.seconds))
    print(f"  heartbeats               {idle}")
    cores = idle.cpu_seconds / idle.seconds
    costs = {}
    for name in ("plain", "claimed"):
        load = Load(client, options.nodes, name, has_claims=name == "claimed")
        if load.has_claims:
            await each(options.pods, load.create_claim)
        began = await simulation.timed(all_of(options.pods, load.create, load, "Running"))
        ended = await simulation.timed(all_of(options.pods, load.delete, load, ""))
        print(f"  {options.pods} {name} pods start {began}")
        print(f"  {options.pods} {name} pods end   {ended}")
        costs[name] = sum(took.cpu_seconds - cores * took.seconds for took in (began, ended))
    extra = (costs["claimed"] - costs["plain"]) / options.pods * 1000
    print(f"  a claim adds             {extra:.2f} ms CPU per pod, with the events about it")
    print(f"  peak memory              {simulation.peak_megabytes():.0f} MB")


async def all_of(
    count: int, work: Callable[[int], Awaitable[None]], load: Load, phase: str
) -> None:
    """Create pods and wait until they run; or delete them and wait until they are gone."""
    await each(count, work)
    await load.until(count if phase else 0, phase)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--plugin-dir", action="store_true")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
