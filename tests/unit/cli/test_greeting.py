"""What a cluster has is counted without decoding its nodes and devices."""

from __future__ import annotations

import asyncio

from allot.cli.greeting import Facts, read_facts
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.client.slice_sizes import SLICE_SIZES
from allot.testing.servers import TOKEN, LocalServer

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"


def resource_slice(name: str, devices: int) -> dict[str, object]:
    spec = {
        "driver": "gpu.example.com",
        "nodeName": name,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"d{number}"} for number in range(devices)],
    }
    return {"metadata": {"name": name}, "spec": spec}


def test_facts_about_a_cluster() -> None:
    async def run() -> tuple[Facts, Facts, list[int]]:
        async with LocalServer() as server:
            client = Client(InProcessTransport(server.server.app, TOKEN))
            empty = await read_facts(client)
            for name, devices in (("a", 3), ("b", 0), ("c", 2)):
                await server.post("/api/v1/nodes", {"metadata": {"name": name}})
                await server.post(SLICES, resource_slice(name, devices))
            await server.post(CLASSES, {"metadata": {"name": "gpu"}, "spec": {}})
            sizes = (await client.list(SLICE_SIZES)).items
            return empty, await read_facts(client), [each.device_count for each in sizes]

    empty, filled, sizes = asyncio.run(run())

    assert empty == Facts(0, 0, frozenset())
    assert filled == Facts(3, 5, frozenset(("gpu",)))
    assert sizes == [3, 0, 2]
