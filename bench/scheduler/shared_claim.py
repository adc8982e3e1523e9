"""Pods that share one claim against as many with claims of their own: seconds, CPU and writes, in one run.

Run it with `./scripts/bench scheduler/shared_claim [--pods 256] [--rounds 3]`. One core does everything: API server with its
store on disk (so that writes overlap), scheduler, the controller that releases claims, and the load.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from measure import CLAIMS, build, until  # type: ignore[import-not-found]
from workloads import claim_spec  # type: ignore[import-not-found]

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.cli.components import component_runner
from allot.client import resources
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.controllers.manager import ControllerManager
from allot.controllers.resource_claims.controller import ResourceClaimController
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.core.event_handlers import UNFINISHED
from allot.storage.interface import Store
from allot.storage.opening import open_store
from allot.testing.servers import TOKEN, LocalServer

NODES = 30


class Result(NamedTuple):
    """One measurement."""

    bind_seconds: float
    bind_cpu: float
    release_seconds: float
    release_cpu: float
    claim_writes: int
    failures: int
    queue_checks: int
    attempts: int


async def measure(pods: int, shared: bool) -> Result:
    with TemporaryDirectory() as directory:
        store = await open_store("sqlite", Path(directory))
        return await _measure(store, pods, shared)


async def _measure(store: Store, pods: int, shared: bool) -> Result:
    async with LocalServer(store=store) as server:
        await build(server, "basic", NODES)
        for number in range(1 if shared else pods):
            body = {"metadata": {"name": f"c{number}"}, "spec": claim_spec("basic")}
            await server.post(CLAIMS, body)
        client = Client(InProcessTransport(server.server.app, TOKEN))
        scheduler = SchedulerProcess(client)
        manager = ControllerManager(client, [ResourceClaimController])
        running = [asyncio.create_task(scheduler.run()), asyncio.create_task(manager.run())]
        await until(lambda: scheduler.informers.has_synced)
        bound: set[str] = set()
        changes: Counter[str] = Counter()

        def note(_: Pod, pod: Pod) -> None:
            if pod.node_name:
                bound.add(pod.metadata.name)

        def count(*_: ResourceClaim) -> None:
            changes["writes"] += 1

        scheduler.informers.informer(resources.PODS, UNFINISHED).add_handlers(None, note)
        scheduler.informers.informer(resources.RESOURCE_CLAIMS).add_handlers(None, count)
        gc.collect()
        binding = await _timed(lambda: _load(client, pods, shared), lambda: len(bound) >= pods)
        writes = changes["writes"]
        known = scheduler.informers.informer(resources.RESOURCE_CLAIMS)
        releasing = await _timed(
            lambda: _finish(client, pods),
            lambda: all(not claim.status.reserved_for for claim in known.list()),
        )
        attempts = _total(scheduler, "scheduler_schedule_attempts_total")
        events = await client.list(resources.EVENTS)
        failures = sum(
            each.data.get("series", {}).get("count", 1)
            for each in events.items
            if each.data["reason"] == "FailedScheduling"
        )
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        return Result(*binding, *releasing, writes, failures, scheduler.queue.checks, int(attempts))


async def _timed(work: Callable[[], Any], holds: Callable[[], bool]) -> tuple[float, float]:
    """Seconds and CPU seconds until it holds."""
    started, cpu = time.perf_counter(), time.process_time()
    await work()
    await until(holds)
    return time.perf_counter() - started, time.process_time() - cpu


async def _load(client: Client, pods: int, shared: bool) -> None:
    container = {"name": "m", "image": "pause", "resources": {"claims": [{"name": "c"}]}}

    async def create(number: int) -> None:
        claim = {"name": "c", "resourceClaimName": f"c{0 if shared else number}"}
        spec = {"containers": [container], "resourceClaims": [claim]}
        metadata = {"name": f"p{number}", "namespace": "default"}
        await client.create(resources.PODS, Pod({"metadata": metadata, "spec": spec}))

    await asyncio.gather(*map(create, range(pods)))


async def _finish(client: Client, pods: int) -> None:
    async def finish(number: int) -> None:
        key = ObjectKey("default", f"p{number}")
        change = {"status": {"phase": "Succeeded"}}
        await client.patch(resources.PODS, key, change, subresource="status")

    await asyncio.gather(*map(finish, range(pods)))


def _total(scheduler: SchedulerProcess, name: str) -> float:
    return sum(
        sample.value
        for metric in scheduler.metrics.registry.collect()
        for sample in metric.samples
        if sample.name == name
    )


async def run(options: argparse.Namespace) -> None:
    print(
        "claims  bind s  bind CPU  release s  release CPU  claim writes  failures  checks  attempts"
    )
    ratios = []
    for _ in range(options.rounds):
        own, shared = [await measure(options.pods, each) for each in (False, True)]
        for name, got in (("own", own), ("shared", shared)):
            print(
                f"{name:6} {got.bind_seconds:7.2f} {got.bind_cpu:9.2f} {got.release_seconds:10.2f} "
                f"{got.release_cpu:12.2f} {got.claim_writes:13} {got.failures:9} "
                f"{got.queue_checks:7} {got.attempts:9}",
                flush=True,
            )
        ratios.append(tuple(b / a for a, b in zip(own[:4], shared[:4], strict=True)))
    medians = [sorted(column)[len(column) // 2] for column in zip(*ratios, strict=True)]
    print("shared / own, median: " + "  ".join(f"{each:.2f}" for each in medians))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    with component_runner() as runner:
        runner.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
