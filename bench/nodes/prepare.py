"""What it costs a node to prepare and unprepare the claim of a pod: with a simulated driver, and over a socket.

Run it with `python bench/nodes/prepare.py [--pods 2000]`. CPU time of the node's thread alone: the driver behind the socket runs in
another one, as it would in another process.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import grpc
from prometheus_client import CollectorRegistry

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.client.clock import LoopClock
from allot.kubelet.dra.checkpoint import Checkpoint
from allot.kubelet.dra.driver_plugin import DriverPlugin
from allot.kubelet.dra.faults import NodeFaults
from allot.kubelet.dra.manager import DraManager
from allot.kubelet.dra.metrics import DraMetrics
from allot.kubelet.dra.plugin import PluginIdentity, SocketPlugin
from allot.kubelet.dra.plugin_store import PluginStore
from allot.kubelet.dra.simulated_driver import SimulatedDriver
from allot.proto import dra_plugin_pb2
from allot.proto.services import (
    node_prepare_resources,
    node_unprepare_resources,
    serve,
    unary_handler,
)
from allot.testing.builders import a_claim, a_pod, an_allocation

DRIVER = "gpu.example.com"


async def prepare(request: Any, _: Any) -> Any:
    device = dra_plugin_pb2.Device(pool_name="p", device_name="d", cdi_device_ids=["v/c=x"])
    answer = dra_plugin_pb2.NodePrepareResourceResponse(devices=[device])
    return dra_plugin_pb2.NodePrepareResourcesResponse(
        claims={claim.uid: answer for claim in request.claims}
    )


async def unprepare(request: Any, _: Any) -> Any:
    answer = dra_plugin_pb2.NodeUnprepareResourceResponse()
    return dra_plugin_pb2.NodeUnprepareResourcesResponse(
        claims={claim.uid: answer for claim in request.claims}
    )


async def driver(path: Path, started: threading.Event) -> None:
    server = grpc.aio.server()
    handlers = [
        unary_handler(node_prepare_resources(), prepare),
        unary_handler(node_unprepare_resources(), unprepare),
    ]
    serve(server, handlers)
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    started.set()
    await server.wait_for_termination()


def a_pair(number: int) -> tuple[Pod, ResourceClaim]:
    name = f"p{number}"
    allocation = an_allocation("gpu-0", driver=DRIVER)
    return a_pod(name, uid=name), a_claim(name=name, uid=f"c{number}", allocation=allocation)


async def measure(pods: int, directory: Path) -> None:
    clock = LoopClock()
    pairs = [a_pair(number) for number in range(pods)]
    claims = {claim.metadata.key: claim for _, claim in pairs}
    metrics = DraMetrics(CollectorRegistry())

    def simulated(name: str) -> DriverPlugin:
        return SimulatedDriver(name, claims.get)

    for name in ("simulated", "socket"):
        store = PluginStore(clock, NodeFaults(), simulated)
        checkpoint = None
        plugin = None
        if name == "socket":
            identity = PluginIdentity(DRIVER, str(directory / "dra.sock"))
            plugin = SocketPlugin(identity, metrics, clock.now, lambda: None)
            store.add(plugin)
            checkpoint = Checkpoint(directory / "state")
        manager = DraManager(store, checkpoint, metrics, clock)
        start = time.thread_time()
        for pod, claim in pairs:
            if not manager.prepare_at_once(pod, [claim]):
                await manager.prepare(pod, [claim])
            await manager.unprepare(pod.metadata.uid)
        manager.close()
        took = time.thread_time() - start
        print(f"{name:10} {took / pods * 1000:.3f} ms CPU per pod")
        if plugin is not None:
            await plugin.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        started = threading.Event()
        path = Path(place) / "dra.sock"
        threading.Thread(target=lambda: asyncio.run(driver(path, started)), daemon=True).start()
        started.wait(30)
        asyncio.run(measure(options.pods, Path(place)))


if __name__ == "__main__":
    main()
