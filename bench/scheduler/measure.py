"""How many pods a second get their devices and their node, in one process with the API server.

Run it with `./scripts/bench scheduler [--nodes 100,500] [--variants basic,prio] [--pods N] [--fill 0,0.5,1]`. One
core does everything: API server with its store in memory, informers, decisions, writes, events, and the load.

`--fill` is the share of devices that are taken before. At 1 nothing fits: then it is measured how many pods a
second are told so.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from filling import fill  # type: ignore[import-not-found]
from workloads import (  # type: ignore[import-not-found]
    DRIVER,
    claim_spec,
    classes,
    device,
    pods_per_node,
)

from allot.api.core import Pod
from allot.cli.components import component_runner
from allot.client import resources
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.core.event_handlers import UNFINISHED
from allot.testing.servers import TOKEN, LocalServer

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
VARIANTS = ("basic", "cel2", "cel3", "cel4", "prio", "shares", "derived")


class Result(NamedTuple):
    """One measurement."""

    pods: int
    seconds: float
    cpu_seconds: float
    create_seconds: float
    p50: float
    p99: float
    allocations: int


async def build(server: LocalServer, variant: str, nodes: int) -> None:
    for name, spec in classes(variant).items():
        body = {"metadata": {"name": name}, "spec": spec}
        await server.post("/apis/resource.k8s.io/v1/deviceclasses", body)
    for number in range(nodes):
        name = f"node-{number:04}"
        created = await server.post("/api/v1/nodes", {"metadata": {"name": name}, "spec": {}})
        created["status"] = {
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "1000"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        await server.ask("PUT", f"/api/v1/nodes/{name}/status", created)
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {
            "driver": DRIVER,
            "nodeName": name,
            "pool": pool,
            "devices": [device(variant, number, index) for index in range(10)],
        }
        body = {"metadata": {"name": f"slice-{number:04}"}, "spec": spec}
        await server.post("/apis/resource.k8s.io/v1/resourceslices", body)


async def load(client: Client, count: int) -> list[float]:
    """Create pods; when each of them was created comes back."""
    times = []
    container = {"name": "m", "image": "pause", "resources": {"claims": [{"name": "c"}]}}
    for number in range(count):
        claim = {"name": "c", "resourceClaimName": f"c{number}"}
        spec = {"containers": [container], "resourceClaims": [claim]}
        metadata = {"name": f"p{number}", "namespace": "default"}
        times.append(time.perf_counter())
        await client.create(resources.PODS, Pod({"metadata": metadata, "spec": spec}))
    return times


async def measure(variant: str, nodes: int, pods: int, share: float) -> Result:
    async with LocalServer() as server:
        await build(server, variant, nodes)
        await fill(server, variant, nodes, share)
        spec = claim_spec(variant)
        for number in range(pods):
            await server.post(CLAIMS, {"metadata": {"name": f"c{number}"}, "spec": spec})
        client = Client(InProcessTransport(server.server.app, TOKEN))
        scheduler = SchedulerProcess(client)
        running = asyncio.create_task(scheduler.run())
        await until(lambda: scheduler.informers.has_synced)
        done_at: dict[str, float] = {}

        def note(_: Pod, pod: Pod) -> None:
            if pod.node_name or share >= 1:
                done_at.setdefault(pod.metadata.name, time.perf_counter())

        scheduler.informers.informer(resources.PODS, UNFINISHED).add_handlers(None, note)
        gc.collect()
        gc.freeze()
        cpu = time.process_time()
        created = await load(client, pods)
        creating = time.perf_counter() - created[0]
        await until(lambda: len(done_at) >= pods)
        seconds = time.perf_counter() - created[0]
        cpu_seconds = time.process_time() - cpu
        plugin: Any = scheduler.profiles["default-scheduler"].plugin("DynamicResources")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        waits = sorted(done_at[f"p{number}"] - at for number, at in enumerate(created))
        gc.unfreeze()
        return Result(
            pods,
            seconds,
            cpu_seconds,
            creating,
            waits[len(waits) // 2],
            waits[int(len(waits) * 0.99)],
            plugin.allocations,
        )


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + 300
    while not holds():
        if time.perf_counter() > deadline:
            raise TimeoutError("not all pods were done in five minutes")
        await asyncio.sleep(0.005)


async def run(options: argparse.Namespace) -> None:
    print("nodes variant  fill  pods   pods/s  CPU ms/pod   p50 s   p99 s  searches/pod")
    for nodes in map(int, options.nodes.split(",")):
        for variant in options.variants.split(","):
            for share in map(float, options.fill.split(",")):
                each = pods_per_node(variant)
                room = nodes * (each - round(each * share))
                pods = min(options.pods, room) if share < 1 else options.pods
                got = await measure(variant, nodes, pods, share)
                print(
                    f"{nodes:5} {variant:8} {share:4.2f} {got.pods:5} {got.pods / got.seconds:8.0f} "
                    f"{got.cpu_seconds / got.pods * 1000:11.2f} {got.p50:7.2f} {got.p99:7.2f} "
                    f"{got.allocations / got.pods:13.1f}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", default="100,500")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--fill", default="0")
    with component_runner() as runner:
        runner.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
