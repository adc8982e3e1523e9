"""Pods per second, latency and CPU time per pod while a cluster fills, from empty to full.

Run it with `./scripts/bench cluster/filling [--nodes 100] [--pods 200] [--against KUBECONFIG --pids PID,...] [--json FILE]`. Every node has
ten devices. Before each batch of pods, claims without pods are allocated until the wanted share of all devices is
taken; the last batch takes the last devices. Pods have a claim from a template. `allot up` is started for this; the
other cluster, such as real Kubernetes, runs already and is empty (`cluster/latency` says more), and the processes
whose CPU time counts are told. Both take turns in one run. `fill_plot` draws the files. Wanted: within 1.5 times.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from clusters import (  # type: ignore[import-not-found]
    CLAIMS_PATH,
    DRIVER,
    NO_HEARTBEATS,
    PODS_PATH,
    BoundTimes,
    call,
    claim_spec,
    descendants,
    in_parallel,
    plain_devices,
    pod,
    read_process,
    resource_slice,
    running_up,
    set_up,
)

from allot.client.client import Client
from allot.client.connection import connect

DEVICES: Final = 10
FILLS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The shares of devices that are taken before a batch; of the last one, after it."""
SETTLE_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 1.0
WANTED_RATIO: Final = 1.5


class Batch(NamedTuple):
    """What one batch of pods took."""

    cluster: str
    nodes: int
    fill: float
    pods: int
    pods_per_s: float
    p50_s: float
    p99_s: float
    cpu_ms: float
    """Per pod."""


class Measured:
    """A cluster, and the processes that it consists of."""

    def __init__(self, name: str, kubeconfig: Path, pids: Sequence[int], nodes: int) -> None:
        self.name = name
        self.client: Client = connect(kubeconfig)
        self._pids = pids
        self._nodes = nodes
        self._taken = 0
        """Devices in use: those of nodes in turn."""

    async def fill(self, fill: float, pods: int) -> None:
        """Allocate claims until a share of the devices is taken; to be full after a batch, leave room for it."""
        devices = self._nodes * DEVICES
        wanted = min(int(fill * devices), devices - pods)
        first, self._taken = self._taken, max(wanted, self._taken)
        await in_parallel(self._hold, map(str, range(first, self._taken)))
        await asyncio.sleep(PAUSE_SECONDS)

    async def bind(self, fill: float, pods: int) -> Batch:
        names = [f"p{int(fill * 100):03d}-{number:05d}" for number in range(pods)]
        bound = BoundTimes(self.client)
        await bound.start()
        created: dict[str, float] = {}

        async def create(name: str) -> None:
            created[name] = time.monotonic()
            await call(self.client, "POST", PODS_PATH, pod(name))

        used, started = self._cpu_seconds(), time.monotonic()
        await in_parallel(create, names)
        await bound.wait_for(names)
        used = self._cpu_seconds() - used
        await bound.stop()
        seconds = max(bound.times[name] for name in names) - started
        waits = sorted(bound.times[name] - created[name] for name in names)
        return Batch(
            self.name,
            self._nodes,
            fill,
            pods,
            pods / seconds,
            waits[pods // 2],
            waits[int(0.99 * pods)],
            1e3 * used / pods,
        )

    async def release(self, fill: float, pods: int) -> None:
        """Delete the pods of a batch, so that only claims without pods count for the next one."""
        names = [f"p{int(fill * 100):03d}-{number:05d}" for number in range(pods)]
        await in_parallel(self._delete, names)
        while (await call(self.client, "GET", CLAIMS_PATH + "?labelSelector=%21held"))["items"]:
            await asyncio.sleep(PAUSE_SECONDS)

    async def _delete(self, name: str) -> None:
        await call(self.client, "DELETE", f"{PODS_PATH}/{name}?gracePeriodSeconds=0")

    async def _hold(self, number: str) -> None:
        node, device = f"n{int(number) % self._nodes:05d}", f"d{int(number) // self._nodes}"
        metadata = {"name": f"held-{number}", "labels": {"held": "1"}}
        claim = await call(
            self.client, "POST", CLAIMS_PATH, {"metadata": metadata, "spec": claim_spec()}
        )
        result = {"request": "r", "driver": DRIVER, "pool": node, "device": device}
        claim["status"] = {"allocation": {"devices": {"results": [result]}}}
        await call(self.client, "PUT", f"{CLAIMS_PATH}/held-{number}/status", claim)

    def _cpu_seconds(self) -> float:
        return float(sum(read_process(pid).cpu_seconds for pid in self._pids))


async def measure(clusters: Sequence[Measured], nodes: int, pods: int) -> list[Batch]:
    found = []
    try:
        for cluster in clusters:
            await set_up(
                cluster.client, nodes, lambda name: resource_slice(name, plain_devices(DEVICES))
            )
        await asyncio.sleep(SETTLE_SECONDS)
        for fill in FILLS:
            for cluster in clusters:
                await cluster.fill(fill, pods)
                batch = await cluster.bind(fill, pods)
                found.append(batch)
                print(in_words(batch), flush=True)
                await cluster.release(fill, pods)
    finally:
        for cluster in clusters:
            await cluster.client.transport.close()
    return found


def in_words(batch: Batch) -> str:
    return (
        f"{batch.cluster:<12}{batch.nodes:5} nodes {batch.fill:5.0%}{batch.pods_per_s:8.1f} pods/s"
        f"  p50 {batch.p50_s:6.2f} s  p99 {batch.p99_s:6.2f} s {batch.cpu_ms:7.1f} CPU ms per pod"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--pods", type=int, default=200, help="pods in each batch")
    parser.add_argument("--against", type=Path, help="the kubeconfig of another, empty cluster")
    parser.add_argument("--pids", default="", help="the processes of the other cluster")
    parser.add_argument("--json", type=Path, help="write the batches to a file")
    options = parser.parse_args()
    if options.pods > options.nodes * DEVICES / 4:
        parser.error("a batch may take a quarter of all devices, ten for each node")
    up_options = f"--empty {NO_HEARTBEATS}"
    with tempfile.TemporaryDirectory() as directory, running_up(Path(directory), up_options) as up:
        pids = [*descendants(up.process.pid)]
        clusters = [Measured("allot", up.kubeconfig, pids, options.nodes)]
        if options.against:
            others = [int(pid) for pid in options.pids.split(",") if pid]
            clusters.append(Measured("kubernetes", options.against, others, options.nodes))
        batches = asyncio.run(measure(clusters, options.nodes, options.pods))
    for cluster in clusters:
        rates = [batch.pods_per_s for batch in batches if batch.cluster == cluster.name]
        print(
            f"{cluster.name}: the fastest batch is {max(rates) / min(rates):.2f} times the slowest"
        )
    print(f"wanted: at most {WANTED_RATIO} times")
    if options.json:
        rows: list[dict[str, Any]] = [batch._asdict() for batch in batches]
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
