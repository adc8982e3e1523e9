"""How long `allot up` takes to start on a data directory that is full, and what objects take of its memory.

Run it with `./scripts/bench cluster/cold_start [--nodes 5000] [--devices 20] [--claims 50000] [--pods 0]`. The data directory is filled by an
API server in this process. Claims are allocated. Then `allot up` starts on it: until it says that it is ready, and
until a new pod, which needs one of the free devices, is bound. Memory is that of all its processes, compared with a
start on an empty directory. Wanted: below 10 s.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from clusters import (  # type: ignore[import-not-found]
    CLAIMS_PATH,
    DRIVER,
    PODS_PATH,
    BoundTimes,
    UpProcess,
    call,
    claim_spec,
    in_parallel,
    plain_devices,
    pod,
    resource_slice,
    set_up,
)

from allot.client.client import Client
from allot.client.connection import connect
from allot.client.in_process import InProcessTransport
from allot.storage.opening import open_store
from allot.testing.servers import TOKEN, LocalServer

WANTED_SECONDS = 10.0


class Start(NamedTuple):
    ready_seconds: float
    bound_seconds: float
    resident_mib: float


def device_of(number: int, nodes: int) -> tuple[str, str]:
    """Node and device that a claim holds: claims are spread over nodes."""
    return f"n{number % nodes:05d}", f"d{number // nodes}"


def allocation(number: int, nodes: int) -> dict[str, Any]:
    node, device = device_of(number, nodes)
    result = {"request": "r", "driver": DRIVER, "pool": node, "device": device}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"devices": {"results": [result]}, "nodeSelector": selector}


def running_pod(number: int, nodes: int) -> dict[str, Any]:
    """A pod that runs without claims."""
    container = {"name": "m", "image": "pause"}
    spec = {"nodeName": f"n{number % nodes:05d}", "containers": [container]}
    return {"metadata": {"name": f"running-{number}"}, "spec": spec}


async def remove_taints(client: Client, name: str) -> None:
    """As node-lifecycle-controller does when a new node is ready: the cluster has run before."""
    node = await call(client, "GET", f"/api/v1/nodes/{name}")
    node["spec"].pop("taints", None)
    await call(client, "PUT", f"/api/v1/nodes/{name}", node)


async def fill(data: Path, options: argparse.Namespace) -> None:
    store = await open_store("sqlite", data)
    try:
        async with LocalServer(store) as server:
            client = Client(InProcessTransport(server.server.app, TOKEN))
            slices = plain_devices(options.devices)
            await set_up(client, options.nodes, lambda name: resource_slice(name, slices))
            await in_parallel(
                lambda name: remove_taints(client, name),
                (f"n{number:05d}" for number in range(options.nodes)),
            )

            async def add_claim(number: str) -> None:
                body = {"metadata": {"name": f"c{number}"}, "spec": claim_spec()}
                created = await call(client, "POST", CLAIMS_PATH, body)
                created["status"] = {"allocation": allocation(int(number), options.nodes)}
                await call(client, "PUT", f"{CLAIMS_PATH}/c{number}/status", created)

            async def add_pod(number: str) -> None:
                await call(client, "POST", PODS_PATH, running_pod(int(number), options.nodes))

            await in_parallel(add_claim, map(str, range(options.claims)))
            await in_parallel(add_pod, map(str, range(options.pods)))
    finally:
        await store.close()


async def first_binding(up: UpProcess) -> float:
    """Seconds from the start until a new pod is bound."""
    client = connect(up.kubeconfig)
    try:
        bound = BoundTimes(client)
        await bound.start()
        await call(client, "POST", PODS_PATH, pod("first"))
        await bound.wait_for(["first"])
        await bound.stop()
    finally:
        await client.transport.close()
    seconds: float = time.monotonic() - up.started
    return seconds


def start(data: Path, binds: bool) -> Start:
    up = UpProcess(data, ["--empty"])
    try:
        ready = up.wait_until_ready()
        bound = asyncio.run(first_binding(up)) if binds else 0.0
        time.sleep(2)
        return Start(ready, bound, sum(process.resident_mib for process in up.processes()))
    finally:
        up.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--devices", type=int, default=20, help="on each node")
    parser.add_argument("--claims", type=int, default=50000, help="allocated claims")
    parser.add_argument("--pods", type=int, default=0, help="running pods")
    options = parser.parse_args()
    devices = options.nodes * options.devices
    if options.claims >= devices:
        parser.error(f"{devices} devices are not enough for {options.claims} claims and a pod")
    with tempfile.TemporaryDirectory() as directory:
        empty = start(Path(directory, "empty"), binds=False)
        data = Path(directory, "full")
        asyncio.run(fill(data, options))
        full = start(data, binds=True)
    print(f"{options.nodes} nodes, {devices} devices, {options.claims} claims, {options.pods} pods")
    print(f"{'':<24}{'empty':>10}{'full':>10}")
    print(f"{'ready after s':<24}{empty.ready_seconds:10.1f}{full.ready_seconds:10.1f}")
    print(f"{'a pod bound after s':<24}{'':>10}{full.bound_seconds:10.1f}")
    print(f"{'memory MiB':<24}{empty.resident_mib:10.0f}{full.resident_mib:10.0f}")
    print(f"wanted: ready and a pod bound in less than {WANTED_SECONDS:.0f} s")


if __name__ == "__main__":
    main()
