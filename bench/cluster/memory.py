"""What a node, a device, a claim and a pod take of the memory of `allot up`.

Run it with `./scripts/bench cluster/memory [--nodes 2000] [--devices 20] [--claims 20000] [--pods 20000]`. A data directory
gets nodes, then their slices, then allocated claims, then running pods, from an API server in this process. After each
step `allot up` starts on it, and the resident memory of its two processes is read once it is ready: the difference to
the step before, by object. History for watches is not in it: its size is bounded, whatever the number of objects.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from clusters import (  # type: ignore[import-not-found]
    CLAIMS_PATH,
    CLASS,
    DRA,
    MERGE_PATCH,
    NODE_STATUS,
    PODS_PATH,
    UpProcess,
    call,
    claim_spec,
    in_parallel,
    node,
    plain_devices,
    resource_slice,
)
from cold_start import allocation, running_pod  # type: ignore[import-not-found]

from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.storage.opening import open_store
from allot.testing.servers import TOKEN, LocalServer

SETTLE_SECONDS = 2.0


class Memory(NamedTuple):
    """Resident MiB of each process."""

    server: float
    components: float


class Filling:
    """Adds objects of one kind after the other to a data directory."""

    def __init__(self, data: Path, options: argparse.Namespace) -> None:
        self._data = data
        self._nodes: int = options.nodes
        self._devices = plain_devices(options.devices)

    def add(self, work: Callable[[Client, str], Awaitable[None]], names: Iterable[str]) -> None:
        asyncio.run(self._add(work, names))

    async def _add(
        self, work: Callable[[Client, str], Awaitable[None]], names: Iterable[str]
    ) -> None:
        store = await open_store("sqlite", self._data)
        try:
            async with LocalServer(store) as server:
                client = Client(InProcessTransport(server.server.app, TOKEN))
                await in_parallel(lambda name: work(client, name), names)
        finally:
            await store.close()

    async def node(self, client: Client, name: str) -> None:
        path = f"/api/v1/nodes/{name}"
        await call(client, "POST", "/api/v1/nodes", node(name))
        await call(client, "PATCH", f"{path}/status", {"status": NODE_STATUS}, MERGE_PATCH)
        await call(client, "PATCH", path, {"spec": {"taints": None}}, MERGE_PATCH)

    async def slice(self, client: Client, name: str) -> None:
        await call(client, "POST", f"{DRA}/resourceslices", resource_slice(name, self._devices))

    async def claim(self, client: Client, number: str) -> None:
        body = {"metadata": {"name": f"c{number}"}, "spec": claim_spec()}
        created = await call(client, "POST", CLAIMS_PATH, body)
        created["status"] = {"allocation": allocation(int(number), self._nodes)}
        await call(client, "PUT", f"{CLAIMS_PATH}/c{number}/status", created)

    async def pod(self, client: Client, number: str) -> None:
        await call(client, "POST", PODS_PATH, running_pod(int(number), self._nodes))

    async def device_class(self, client: Client, name: str) -> None:
        await call(client, "POST", f"{DRA}/deviceclasses", {"metadata": {"name": name}})


def measured(data: Path) -> Memory:
    up = UpProcess(data, ["--empty"])
    try:
        up.wait_until_ready()
        time.sleep(SETTLE_SECONDS)
        server, components = (process.resident_mib for process in up.processes())
        return Memory(server, components)
    finally:
        up.stop()


def show(what: str, before: Memory, after: Memory, count: int) -> None:
    server, components = (
        (new - old) * 1024 / count for old, new in zip(before, after, strict=True)
    )
    print(f"{what:<10}{server:12.2f}{components:12.2f}{server + components:12.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--devices", type=int, default=20, help="on each node")
    parser.add_argument("--claims", type=int, default=20000, help="allocated claims")
    parser.add_argument("--pods", type=int, default=20000, help="running pods")
    options = parser.parse_args()
    devices = options.nodes * options.devices
    if options.claims > devices:
        parser.error(f"{devices} devices are not enough for {options.claims} claims")
    names = [f"n{number:05d}" for number in range(options.nodes)]
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory, "data")
        filling = Filling(data, options)
        filling.add(filling.device_class, [CLASS])
        empty = before = measured(data)
        print(f"empty: {empty.server:.0f} MiB API server, {empty.components:.0f} MiB components")
        print(f"{'KiB for a':<10}{'API server':>12}{'components':>12}{'both':>12}")
        for what, work, objects, count in (
            ("node", filling.node, names, options.nodes),
            ("device", filling.slice, names, devices),
            ("claim", filling.claim, map(str, range(options.claims)), options.claims),
            ("pod", filling.pod, map(str, range(options.pods)), options.pods),
        ):
            filling.add(work, objects)
            after = measured(data)
            show(what, before, after, count)
            before = after
    print(f"in the end: {before.server:.0f} and {before.components:.0f} MiB")


if __name__ == "__main__":
    main()
