"""What derived attributes (KEP-6080) cost beside a literal twin: in one search, and per pod that is scheduled.

Run it with `./scripts/bench derived [--searches 31] [--pods 600] [--attributes 1,8] [--only search,scheduling]`. The twins
take turns; every pair gives a ratio, and of all of them the median counts, with its 95 % interval. KEP-6080's objective is
that scheduling takes at most 5 % longer. In the second part one process does everything: API server with its store in
memory, informers, decisions, writes. Pods come one after the other, so that latency is not the time in a queue.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from intervals import ratio_of  # type: ignore[import-not-found]
from twins import (  # type: ignore[import-not-found]
    ATTRIBUTES,
    DERIVED,
    DEVICE_CLASS,
    LITERAL,
    claim_spec,
    resource_slice,
)

from allot.allocation import (
    Allocated,
    AllocationProblem,
    Inventory,
    Ledger,
    StepBudget,
    TargetNode,
    allocate,
)
from allot.api.core import Pod
from allot.api.identities import GroupVersionKind
from allot.api.scheme import decode_object
from allot.cli.components import component_runner
from allot.client import resources
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.features import DEFAULTS
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.core.event_handlers import UNFINISHED
from allot.testing.servers import TOKEN, LocalServer

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
TWINS = (LITERAL, DERIVED)
SEARCH_SIZES = (8, 32, 128)
DEVICES = 8
"""Per node, of which a pod takes two."""
CALLS = 200
"""Searches of one measurement; the best of `BATCHES` counts."""
BATCHES = 3
WARM_UP = 20
SETTLE_SECONDS = 0.002
"""Time for watchers and events to follow."""


# --- one search ---


def an_object(kind: str, body: dict[str, Any]) -> Any:
    gvk = GroupVersionKind("resource.k8s.io", "v1", kind)
    return decode_object(msgspec.json.encode(body), gvk, datetime.now(UTC))


def a_problem(twin: str, attributes: int, devices: int) -> AllocationProblem:
    body = {
        "metadata": {"name": "c", "namespace": "default"},
        "spec": claim_spec(twin, attributes),
    }
    slice_ = an_object("ResourceSlice", resource_slice("node-1", devices))
    return AllocationProblem(
        TargetNode("node-1"),
        [an_object("ResourceClaim", body)],
        {"bench": an_object("DeviceClass", DEVICE_CLASS)},
        Inventory(DEFAULTS, [slice_]),
        Ledger(DEFAULTS),
    )


def seconds_per_search(problem: AllocationProblem) -> float:
    def batch() -> float:
        begin = time.process_time()
        for _ in range(CALLS):
            allocate(problem, BUDGET, str)
        return time.process_time() - begin

    return min(batch() for _ in range(BATCHES)) / CALLS


BUDGET = StepBudget(100_000)


def measure_search(pairs: int, attributes: Sequence[int]) -> None:
    print("one warm search                       literal µs  derived µs   derived / literal, 95 %")
    for count in attributes:
        for devices in SEARCH_SIZES:
            problems = [a_problem(twin, count, devices) for twin in TWINS]
            answers = [allocate(problem, BUDGET, str) for problem in problems]
            assert isinstance(answers[0], Allocated)
            assert answers[0] == answers[1]
            taken = in_turns(lambda twin, p=problems: seconds_per_search(p[twin]), pairs)  # type: ignore[misc]
            row = f"{count} attributes, {devices} devices"
            print(
                f"{row:38}{min(a for a, _ in taken) * 1e6:10.1f}"
                f"{min(b for _, b in taken) * 1e6:12.1f}   {ratio_of(taken)}",
                flush=True,
            )


def in_turns(measure: Callable[[int], float], pairs: int) -> list[tuple[float, float]]:
    """Literal and derived; which of them comes first changes with every pair."""
    taken = []
    for number in range(pairs):
        if number % 2:
            second = measure(1)
            taken.append((measure(0), second))
        else:
            first = measure(0)
            taken.append((first, measure(1)))
    return taken


# --- pods ---


class Scheduled(NamedTuple):
    """One pod: seconds until it was bound, and CPU seconds of all that happened meanwhile."""

    latency: float
    cpu: float
    claim_cpu: float
    """The API server's part: what it took to create the claim before."""


class Cluster:
    """API server and scheduler, with room for so many pods."""

    def __init__(self, server: LocalServer) -> None:
        self._server = server
        self._client = Client(InProcessTransport(server.server.app, TOKEN))
        self._scheduler = SchedulerProcess(self._client)
        self._bound = asyncio.Event()
        self._created = 0

    async def build(self, nodes: int) -> None:
        await self._server.post(f"{GROUP}/deviceclasses", DEVICE_CLASS)
        for number in range(nodes):
            name = f"node-{number:04}"
            created = await self._server.post("/api/v1/nodes", {"metadata": {"name": name}})
            created["status"] = {
                "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "1000"},
                "conditions": [{"type": "Ready", "status": "True"}],
            }
            await self._server.ask("PUT", f"/api/v1/nodes/{name}/status", created)
            await self._server.post(f"{GROUP}/resourceslices", resource_slice(name, DEVICES))

    async def run(self) -> None:
        await self._scheduler.run()

    async def wait_until_synced(self) -> None:
        deadline = time.perf_counter() + 60
        while not self._scheduler.informers.has_synced:
            if time.perf_counter() > deadline:
                raise TimeoutError("the informers have not synced within a minute")
            await asyncio.sleep(0.01)

        def note(_: Pod, pod: Pod) -> None:
            if pod.node_name and pod.metadata.name == f"p{self._created}":
                self._bound.set()

        self._scheduler.informers.informer(resources.PODS, UNFINISHED).add_handlers(None, note)

    async def schedule(self, twin: str, attributes: int) -> Scheduled:
        """Create a claim, and when all have seen it a pod; wait until that is bound."""
        self._created += 1
        self._bound.clear()
        body = {"metadata": {"name": f"c{self._created}"}, "spec": claim_spec(twin, attributes)}
        begin = time.process_time()
        await self._server.post(CLAIMS, body)
        claim_cpu = time.process_time() - begin
        await asyncio.sleep(SETTLE_SECONDS)
        claim = {"name": "c", "resourceClaimName": f"c{self._created}"}
        container = {"name": "m", "image": "pause", "resources": {"claims": [{"name": "c"}]}}
        spec = {"containers": [container], "resourceClaims": [claim]}
        metadata = {"name": f"p{self._created}", "namespace": "default"}
        cpu, begin = time.process_time(), time.perf_counter()
        await self._client.create(resources.PODS, Pod({"metadata": metadata, "spec": spec}))
        await asyncio.wait_for(self._bound.wait(), 60)
        latency = time.perf_counter() - begin
        await asyncio.sleep(SETTLE_SECONDS)
        return Scheduled(latency, time.process_time() - cpu, claim_cpu)


async def measure_scheduling(pairs: int, attributes: int) -> None:
    nodes = -(-4 * (pairs + WARM_UP) // DEVICES) + 1
    async with LocalServer() as server:
        cluster = Cluster(server)
        await cluster.build(nodes)
        running = asyncio.create_task(cluster.run())
        try:
            await cluster.wait_until_synced()
            for number in range(2 * WARM_UP):
                await cluster.schedule(TWINS[number % 2], attributes)
            taken = [await a_pair(cluster, attributes, number) for number in range(pairs)]
        finally:
            gc.enable()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    for name, field in {
        "latency": "latency",
        "CPU, pod to bound": "cpu",
        "CPU, claim created": "claim_cpu",
    }.items():
        each = [(getattr(one, field), getattr(other, field)) for one, other in taken]
        literal = statistics.median(one for one, _ in each)
        derived = statistics.median(other for _, other in each)
        row = f"{attributes} attributes, {nodes} nodes, {name}"
        print(f"{row:46}{literal * 1e3:8.2f}{derived * 1e3:12.2f}   {ratio_of(each)}", flush=True)


async def a_pair(cluster: Cluster, attributes: int, number: int) -> tuple[Scheduled, Scheduled]:
    """The garbage collector runs between pairs: its turns would hit one of the twins."""
    gc.disable()
    if not number % 50:
        gc.collect()
        gc.freeze()
    order = TWINS if number % 2 else TWINS[::-1]
    pods = {twin: await cluster.schedule(twin, attributes) for twin in order}
    return pods[LITERAL], pods[DERIVED]


async def run(options: argparse.Namespace) -> None:
    attributes = [int(text) for text in options.attributes.split(",")]
    if "search" in options.only:
        measure_search(options.searches, attributes)
    if "scheduling" in options.only:
        print(f"\nper pod, {options.pods} pairs                        literal ms  derived ms")
        for count in attributes:
            await measure_scheduling(options.pods, count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=31)
    parser.add_argument("--pods", type=int, default=600)
    parser.add_argument("--attributes", default=",".join(map(str, ATTRIBUTES)))
    parser.add_argument("--only", default="search,scheduling")
    with component_runner() as runner:
        runner.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
