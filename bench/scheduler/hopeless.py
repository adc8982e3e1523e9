"""Pods that fit nowhere, beside ones that fit: what deciding, explaining and reporting cost, and who waits for whom.

Run it with `./scripts/bench scheduler/hopeless [--pods 5000] [--nodes 1000] [--devices 100] [--wishes 1] [--fitting 200]`.
One core does everything: API server with its store in memory, scheduler, and the load. The hopeless pods come first.
Then ones that fit are created one by one; each takes a device, which is an event that concerns all that wait. Of the
first ten one is deleted every now and then, so that devices become free.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import Callable
from typing import Any

from measure import CLAIMS, until  # type: ignore[import-not-found]
from workloads import DRIVER, classes  # type: ignore[import-not-found]

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.cli.components import component_runner
from allot.client import resources
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.core import scheduler as scheduler_module
from allot.scheduler.core.event_handlers import UNFINISHED
from allot.testing.servers import TOKEN, LocalServer


class Stopwatch:
    """The CPU seconds spent in some functions. What one of them spends inside another counts for the inner one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.longest: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self._inner = [0.0]

    def watch(self, owner: Any, name: str, label: str) -> None:
        inner = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            started = time.process_time()
            self._inner.append(0.0)
            try:
                return inner(*args, **options)
            finally:
                total = time.process_time() - started
                own = total - self._inner.pop()
                self._inner[-1] += total
                self.seconds[label] = self.seconds.get(label, 0.0) + own
                self.longest[label] = max(self.longest.get(label, 0.0), own)
                self.calls[label] = self.calls.get(label, 0) + 1

        setattr(owner, name, timed)


async def build(server: LocalServer, nodes: int, devices: int) -> None:
    for name, spec in classes("basic").items():
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
        spec = {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": f"d{index}", "attributes": {"model": {"string": "a"}}}
                for index in range(devices)
            ],
        }
        body = {"metadata": {"name": f"slice-{number:04}"}, "spec": spec}
        await server.post("/apis/resource.k8s.io/v1/resourceslices", body)


def claim(name: str, model: str) -> dict[str, Any]:
    expression = f"device.attributes['{DRIVER}'].model == '{model}'"
    exactly = {"deviceClassName": "bench", "selectors": [{"cel": {"expression": expression}}]}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return {"metadata": {"name": name}, "spec": spec}


async def create(client: Client, name: str) -> None:
    container = {"name": "m", "image": "pause", "resources": {"claims": [{"name": "c"}]}}
    uses = {"name": "c", "resourceClaimName": name}
    spec = {"containers": [container], "resourceClaims": [uses]}
    metadata = {"name": name, "namespace": "default"}
    await client.create(resources.PODS, Pod({"metadata": metadata, "spec": spec}))


def watched(scheduler: SchedulerProcess) -> Stopwatch:
    watch = Stopwatch()
    for cycle in scheduler.scheduler._cycles.values():
        watch.watch(cycle, "decide", "decide")
    reasons = getattr(scheduler, "reasons", None)
    if reasons is not None:
        watch.watch(reasons, "of", "explain")
    else:
        watch.watch(scheduler.scheduler, "_useful_reason", "explain")
    watch.watch(scheduler.queue, "happened", "queue: events")
    watch.watch(scheduler.queue, "put_back", "queue: put back")
    watch.watch(scheduler_module, "no_node_fits", "summary")
    for profile in scheduler.profiles.values():
        for plugin in profile.post_filter:
            if plugin.name == "DefaultPreemption":
                watch.watch(plugin, "decide", "preemption")
    return watch


async def run(options: argparse.Namespace) -> None:
    async with LocalServer() as server:
        await build(server, options.nodes, options.devices)
        for number in range(options.pods):
            await server.post(CLAIMS, claim(f"h{number}", f"none-{number % options.wishes}"))
        for number in range(options.fitting):
            await server.post(CLAIMS, claim(f"f{number}", "a"))
        client = Client(InProcessTransport(server.server.app, TOKEN))
        scheduler = SchedulerProcess(client)
        watch = watched(scheduler)
        running = asyncio.create_task(scheduler.run())
        await until(lambda: scheduler.informers.has_synced)
        told: set[str] = set()
        bound: dict[str, float] = {}

        def note(_: Pod, pod: Pod) -> None:
            name = pod.metadata.name
            if pod.node_name:
                bound.setdefault(name, time.perf_counter())
            elif pod.get("status", "conditions", default=()):
                told.add(name)

        scheduler.informers.informer(resources.PODS, UNFINISHED).add_handlers(None, note)
        gc.collect()
        gc.freeze()

        def figures(title: str, started: tuple[float, float], pods: int) -> None:
            seconds = time.perf_counter() - started[0]
            cpu = time.process_time() - started[1]
            print(f"{title}: {seconds:.1f} s, CPU {cpu:.1f} s, {cpu / pods * 1000:.2f} ms per pod")
            for label, spent in sorted(watch.seconds.items(), key=lambda item: -item[1]):
                print(
                    f"  {label:16} {spent:8.2f} s {spent / cpu:6.1%} of CPU, {watch.calls[label]:8} calls, "
                    f"longest {watch.longest[label] * 1000:6.1f} ms"
                )
            checks = getattr(scheduler.queue, "checks", 0)
            print(f"  queue checks {checks}", flush=True)
            for table in (watch.seconds, watch.calls, watch.longest):
                table.clear()

        started = time.perf_counter(), time.process_time()
        for number in range(options.pods):
            await create(client, f"h{number}")
        await until(lambda: len(told) >= options.pods)
        figures(f"{options.pods} hopeless pods are told", started, options.pods)
        started = time.perf_counter(), time.process_time()
        waits = []
        for number in range(options.fitting):
            name = f"f{number}"
            began = time.perf_counter()
            await create(client, name)
            await until(_contains(bound, name))
            waits.append(bound[name] - began)
            if number % 20 == 10:
                await _end(client, f"f{number // 20}")
        figures(f"{options.fitting} fitting pods, one by one", started, options.fitting)
        waits.sort()
        print(
            f"  bound after {waits[len(waits) // 2] * 1000:.0f} ms (median), "
            f"{waits[-1] * 1000:.0f} ms (longest)"
        )
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _contains(names: dict[str, float], name: str) -> Callable[[], bool]:
    return lambda: name in names


async def _end(client: Client, name: str) -> None:
    """The pod goes, and its claim is free."""
    key = ObjectKey("default", name)
    await client.delete(resources.PODS, key)
    found: ResourceClaim = await client.get(resources.RESOURCE_CLAIMS, key)
    freed = {"status": {"allocation": None, "reservedFor": None}}
    version = {"metadata": {"resourceVersion": found.metadata.resource_version}}
    await client.patch(resources.RESOURCE_CLAIMS, key, freed | version, subresource="status")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--devices", type=int, default=100)
    parser.add_argument("--wishes", type=int, default=1)
    parser.add_argument("--fitting", type=int, default=200)
    with component_runner() as runner:
        runner.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
