"""What pods that wait for their devices cost the others, and how quickly they are bound once the devices are ready.

Run it with `./scripts/bench binding [--nodes 100] [--waiting 1000] [--pods 1000] [--rounds 3] [--calls]`. One core does
everything: API server with its store in memory, informers, decisions, writes, events, and the load. Ordinary pods (without claims,
and with a claim for a device that is always ready) are scheduled in a cluster without waiting pods, and in one where
many do; both take turns, and the best of all rounds counts. Rates are per second of CPU, which others on the machine
disturb less; with `--calls` they are per million calls of Python functions, which other processes do not change. Then all conditions
turn True, and that is measured by the clock on the wall.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any, NamedTuple

from allot.cli.components import component_runner
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.client.resources import RESOURCE_CLAIMS
from allot.scheduler.assembly import SchedulerProcess
from allot.testing.servers import TOKEN, LocalServer

BASE = "/apis/resource.k8s.io/v1"
CLAIMS = f"{BASE}/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
SLOW, QUICK = "slow.example.com", "quick.example.com"
WANTED_RATIO, WANTED_SECONDS = 0.8, 10.0
WARM_UP = 2
"""Pods per node that are scheduled before anything is measured."""


@contextmanager
def cpu_seconds() -> Iterator[Callable[[], float]]:
    """What was spent until it is asked for."""
    started = time.process_time()
    yield lambda: time.process_time() - started


@contextmanager
def million_calls() -> Iterator[Callable[[], float]]:
    profile = cProfile.Profile()
    profile.enable()
    try:
        yield lambda: sum(entry.callcount for entry in profile.getstats()) / 1e6
    finally:
        profile.disable()


Effort = Callable[[], AbstractContextManager[Callable[[], float]]]


class Cluster:
    """A server with a scheduler, and nodes that have devices of both kinds."""

    def __init__(self, server: LocalServer, effort: Effort) -> None:
        self.server = server
        self._effort = effort
        self.scheduler = SchedulerProcess(Client(InProcessTransport(server.server.app, TOKEN)))

    async def build(self, nodes: int, devices: int) -> None:
        for name in (SLOW, QUICK):
            selector = {"cel": {"expression": f"device.driver == '{name}'"}}
            body = {"metadata": {"name": name}, "spec": {"selectors": [selector]}}
            await self.server.post(f"{BASE}/deviceclasses", body)
        for number in range(nodes):
            node = f"node-{number:04}"
            created = await self.server.post("/api/v1/nodes", {"metadata": {"name": node}})
            created["status"] = {
                "allocatable": {"cpu": "640", "memory": "2560Gi", "pods": "10000"},
                "conditions": [{"type": "Ready", "status": "True"}],
            }
            await self.server.ask("PUT", f"/api/v1/nodes/{node}/status", created)
            for driver in (SLOW, QUICK):
                await self._publish(driver, node, devices)

    async def _publish(self, driver: str, node: str, devices: int) -> None:
        needs: dict[str, Any] = {}
        if driver == SLOW:
            needs = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        offered = [{"name": f"d{index}", **needs} for index in range(devices)]
        spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": offered}
        body = {"metadata": {"name": f"{node}-{driver}"}, "spec": spec}
        await self.server.post(f"{BASE}/resourceslices", body)

    async def load(self, prefix: str, count: int, class_name: str = "") -> float:
        """Create pods, with a claim each if there is a class; how long that took comes back."""
        started = time.perf_counter()
        for number in range(count):
            name = f"{prefix}-{number}"
            spec: dict[str, Any] = {"containers": [{"name": "m", "image": "pause"}]}
            if class_name:
                request = {"name": "r", "exactly": {"deviceClassName": class_name}}
                wish = {"devices": {"requests": [request]}}
                await self.server.post(CLAIMS, {"metadata": {"name": name}, "spec": wish})
                spec["resourceClaims"] = [{"name": "c", "resourceClaimName": name}]
            await self.server.post(PODS, {"metadata": {"name": name}, "spec": spec})
            await asyncio.sleep(0)
        return time.perf_counter() - started

    @property
    def bound(self) -> int:
        return len(self.scheduler.cluster.pods) - self.scheduler.cluster.assumed_count

    @property
    def waiting(self) -> int:
        return self.scheduler.cluster.assumed_count

    async def schedule(self, prefix: str, count: int, class_name: str = "") -> float:
        """Pods per unit of effort, from the first creation to the last binding."""
        gc.collect()
        wanted = self.bound + count
        with self._effort() as spent:
            await self.load(prefix, count, class_name)
            await until(lambda: self.bound >= wanted)
        return count / spent()

    async def make_ready(self, count: int) -> float:
        """Set all conditions; seconds from the first one to the last binding."""
        wanted = self.bound + count
        gc.collect()
        listed = await self.scheduler.client.list(RESOURCE_CLAIMS)
        names = [claim.metadata.name for claim in listed.items]
        started = time.perf_counter()
        for name in names:
            if name.startswith("waiting-"):
                await self._set_ready(name)
        await until(lambda: self.bound >= wanted)
        return time.perf_counter() - started

    async def _set_ready(self, name: str) -> None:
        claim = await self.server.get(f"{CLAIMS}/{name}")
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        entry = {field: result[field] for field in ("driver", "pool", "device")}
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "Attached",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        claim["status"]["devices"] = [{**entry, "conditions": [ready]}]
        answer = await self.server.ask("PUT", f"{CLAIMS}/{name}/status", claim)
        assert answer.code == 200, answer
        await asyncio.sleep(0)


@asynccontextmanager
async def a_cluster(nodes: int, devices: int, effort: Effort) -> AsyncIterator[Cluster]:
    async with LocalServer() as server:
        cluster = Cluster(server, effort)
        await cluster.build(nodes, devices)
        running = asyncio.create_task(cluster.scheduler.run())
        try:
            yield cluster
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + 300
    while not holds():
        if time.perf_counter() > deadline:
            raise TimeoutError("not all pods were scheduled in five minutes")
        await asyncio.sleep(0.005)


class Round(NamedTuple):
    """One measurement; without waiting pods the last two are zero."""

    plain: float
    with_claims: float
    start_seconds: float = 0.0
    bind_seconds: float = 0.0


async def measure(options: argparse.Namespace, waiting: int) -> Round:
    devices = -(-max(options.waiting, options.pods) // options.nodes)
    effort = million_calls if options.calls else cpu_seconds
    async with a_cluster(options.nodes, devices + WARM_UP, effort) as cluster:
        await cluster.schedule("warm", WARM_UP * options.nodes, QUICK)
        started = time.perf_counter()
        await cluster.load("waiting", waiting, SLOW)
        await until(lambda: cluster.waiting >= waiting)
        start_seconds = time.perf_counter() - started
        plain = await cluster.schedule("plain", options.pods)
        with_claims = await cluster.schedule("claimed", options.pods, QUICK)
        if not waiting:
            return Round(plain, with_claims)
        assert cluster.waiting == waiting, "they wait no longer"
        return Round(plain, with_claims, start_seconds, await cluster.make_ready(waiting))


async def run(options: argparse.Namespace) -> None:
    alone, beside = [], []
    for _ in range(options.rounds):
        alone.append(await measure(options, 0))
        beside.append(await measure(options, options.waiting))
    print(f"{options.nodes} nodes, {options.waiting} pods wait, {options.pods} ordinary ones")
    unit = "million calls" if options.calls else "s of CPU"
    print(f"pods per {unit:15} none waits    many wait   ratio  wanted")
    for name in ("plain", "with_claims"):
        one = max(getattr(each, name) for each in alone)
        other = max(getattr(each, name) for each in beside)
        print(f"{name:24} {one:12.0f} {other:10.0f} {other / one:7.2f} {WANTED_RATIO:7.2f}")
    print(f"all begin to wait within {min(each.start_seconds for each in beside):.2f} s")
    bound = min(each.bind_seconds for each in beside)
    print(f"all are bound {bound:.2f} s after the first condition is set; wanted {WANTED_SECONDS}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", action="store_true", help="count calls instead of seconds")
    with component_runner() as runner:
        runner.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
