"""How long a question about pools takes: many pools, all their devices allocated, a claim for each.

Run it with `python bench/controllers/pool_status.py [--pools 1000] [--devices 8] [--questions 10]`. API server with its
store in memory and controller in one process. The yardstick in the same run is counting all over again from all
claims, as if none had been followed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import time
from typing import Any, NamedTuple

from allot.allocation.allocated_devices import Ledger
from allot.api.pool_status import ResourcePoolStatusRequestSpec
from allot.cli.components import component_runner
from allot.client import resources
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.controllers.manager import ControllerManager
from allot.controllers.pool_status import ResourcePoolStatusRequestController, answer_request
from allot.features import DEFAULTS
from allot.testing.servers import TOKEN, LocalServer

DRIVER = "gpu.example.com"
V1 = "/apis/resource.k8s.io/v1"
CLAIMS = f"{V1}/namespaces/default/resourceclaims"
QUESTIONS = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests"


class Result(NamedTuple):
    """One measurement, in seconds."""

    first: float
    median: float
    slowest: float
    counting: float
    from_scratch: float


async def build(server: LocalServer, pools: int, devices: int) -> None:
    """Pools whose devices are all allocated."""
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    for number in range(pools):
        name = f"node-{number:04}"
        listed = [
            {"name": f"gpu-{index}", "attributes": {"model": {"string": "a100"}}}
            for index in range(devices)
        ]
        spec = {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": listed,
        }
        await server.post(f"{V1}/resourceslices", {"metadata": {"name": name}, "spec": spec})
        for index in range(devices):
            claim = f"c-{number}-{index}"
            body = {"metadata": {"name": claim}, "spec": {"devices": {"requests": [request]}}}
            created = await server.post(CLAIMS, body)
            result = {"request": "r", "driver": DRIVER, "pool": name, "device": f"gpu-{index}"}
            created["status"] = {"allocation": {"devices": {"results": [result]}}}
            answer = await server.ask("PUT", f"{CLAIMS}/{claim}/status", created)
            assert answer.code == 200, answer


async def ask(server: LocalServer, name: str, pools: int, devices: int) -> float:
    """Seconds from the question to the answer, which must be right."""
    began = time.perf_counter()
    spec = {"driver": DRIVER, "limit": min(pools, 1000)}
    await server.post(QUESTIONS, {"metadata": {"name": name}, "spec": spec})
    while True:
        found: dict[str, Any] = (await server.get(f"{QUESTIONS}/{name}")).get("status") or {}
        if found:
            break
        if time.perf_counter() - began > 60:
            raise TimeoutError("no answer in a minute")
        await asyncio.sleep(0.002)
    seconds = time.perf_counter() - began
    assert found["poolCount"] == pools
    assert all(pool["allocatedDevices"] == devices for pool in found["pools"])
    return seconds


async def compare(client: Client, pools: int) -> tuple[float, float]:
    """Seconds to count with a ledger that was kept, and with one that must be made first."""
    slices = (await client.list(resources.RESOURCE_SLICES)).items
    claims = (await client.list(resources.RESOURCE_CLAIMS)).items
    began = time.perf_counter()
    ledger = Ledger(DEFAULTS)
    for claim in claims:
        assert claim.status.allocation is not None
        ledger.add(claim.metadata.uid, claim.status.allocation)
    middle = time.perf_counter()
    answer_request(
        ResourcePoolStatusRequestSpec(driver=DRIVER, limit=min(pools, 1000)), slices, ledger
    )
    end = time.perf_counter()
    return end - middle, end - began


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def measure(pools: int, devices: int, questions: int) -> Result:
    async with LocalServer() as server:
        began = time.perf_counter()
        await build(server, pools, devices)
        built = _megabytes()
        print(
            f"server with {pools * devices} claims: {time.perf_counter() - began:.1f} s, {built:.0f} MB"
        )
        client = Client(InProcessTransport(server.server.app, TOKEN))
        manager = ControllerManager(client, [ResourcePoolStatusRequestController])
        running = asyncio.create_task(manager.run())
        while not manager.is_ready:
            await asyncio.sleep(0.01)
        gc.collect()
        print(f"controller with its copies: {_megabytes() - built:.0f} MB more")
        waits = [
            await ask(server, f"question-{number}", pools, devices) for number in range(questions)
        ]
        counting, from_scratch = await compare(client, pools)
        print(f"in the end: {_megabytes():.0f} MB")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        ordered = sorted(waits)
        return Result(waits[0], ordered[len(ordered) // 2], ordered[-1], counting, from_scratch)


async def run(options: argparse.Namespace) -> None:
    got = await measure(options.pools, options.devices, options.questions)
    print("pools devices  first ms  median ms  slowest ms  counting ms  from scratch ms")
    shown = "  ".join(f"{seconds * 1000:.0f}" for seconds in got)
    print(f"{options.pools}  {options.devices}  {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pools", type=int, default=1000)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--questions", type=int, default=10)
    with component_runner() as runner:
        runner.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
