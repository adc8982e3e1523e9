"""How many claims a second are made from templates, and freed again, in one process with the API server.

Run it with `python bench/controllers/claims.py [--pods 5000] [--profile FILE]`. One core does everything: API server
with its store in memory, informers, the controller. Pods are there before the controller starts, or come while it
runs; then all of them finish, and their claims are released, deallocated and deleted. The yardsticks in the same run
are what the API server alone takes to create as many pods, and to create as many claims and tell the pods.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import resource
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from allot.api.core import Pod
from allot.cli.components import component_runner
from allot.client import resources
from allot.client.client import Client
from allot.client.event_recorder import EventRecorder
from allot.client.in_process import InProcessTransport
from allot.client.informer import InformerFactory
from allot.controllers.controller import ControllerContext
from allot.controllers.resource_claims import ResourceClaimController
from allot.testing.servers import TOKEN, LocalServer

GROUP = "/apis/resource.k8s.io/v1/namespaces/default"
CLAIMS = f"{GROUP}/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
FINALIZER = "resource.kubernetes.io/delete-protection"
SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Took(NamedTuple):
    """Real time and our own."""

    seconds: float
    cpu_seconds: float


async def timed(work: Callable[[], Awaitable[None]]) -> Took:
    gc.collect()
    gc.freeze()
    start, cpu = time.perf_counter(), time.process_time()
    await work()
    took = Took(time.perf_counter() - start, time.process_time() - cpu)
    gc.unfreeze()
    return took


class Running:
    """The controller, and what its informers show."""

    def __init__(self, server: LocalServer) -> None:
        client = Client(InProcessTransport(server.server.app, TOKEN))
        self._informers = InformerFactory(client)
        recorder = EventRecorder(client, "bench", "bench")
        self._controller = ResourceClaimController(
            ControllerContext(client, self._informers, recorder)
        )
        self.claims = self._informers.informer(resources.RESOURCE_CLAIMS).store
        self.told: set[str] = set()
        pods = self._informers.informer(resources.PODS)
        pods.add_handlers(None, self._pod_changed)
        self._task = asyncio.create_task(self._run())

    def _pod_changed(self, _: Pod, pod: Pod) -> None:
        if pod.data["status"].get("resourceClaimStatuses"):
            self.told.add(pod.data["metadata"]["name"])

    async def _run(self) -> None:
        self._informers.start()
        await self._informers.wait_synced()
        await self._controller.run()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._informers.stop()


class Bench:
    """A cluster of nothing but pods and claims."""

    def __init__(self, server: LocalServer, pods: int) -> None:
        self.server = server
        self.pods = pods

    async def set_up(self) -> None:
        body = {"metadata": {"name": "t"}, "spec": {"spec": SPEC}}
        await self.server.post(f"{GROUP}/resourceclaimtemplates", body)

    async def create_pods(self) -> None:
        container = {"name": "m", "image": "pause", "resources": {"claims": [{"name": "c"}]}}
        entry = {"name": "c", "resourceClaimTemplateName": "t"}
        spec = {"containers": [container], "resourceClaims": [entry]}
        for number in range(self.pods):
            await self.server.post(PODS, {"metadata": {"name": f"p{number}"}, "spec": spec})
            await asyncio.sleep(0)

    async def make_claims_by_hand(self) -> None:
        """The same writes without a controller: what the API server takes for them."""
        for number in range(self.pods):
            name = f"by-hand-{number}"
            await self.server.post(CLAIMS, {"metadata": {"name": name}, "spec": SPEC})
            told = [{"name": "c", "resourceClaimName": name}]
            patch = {"status": {"resourceClaimStatuses": told}}
            await self.ask("PATCH", f"{PODS}/p{number}/status", patch, STRATEGIC)

    async def use_claims(self) -> None:
        """Allocate and reserve all claims and bind their pods, as a scheduler would."""
        for pod in (await self.server.get(PODS))["items"]:
            name = pod["metadata"]["name"]
            claim = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
            result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": name}
            user = {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
            status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
            metadata = {"finalizers": [FINALIZER]}
            await self.ask("PATCH", f"{CLAIMS}/{claim}", {"metadata": metadata}, MERGE)
            await self.ask("PATCH", f"{CLAIMS}/{claim}/status", {"status": status}, MERGE)
            binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}}
            await self.ask("POST", f"{PODS}/{name}/binding", binding)

    async def finish_pods(self) -> None:
        patch = {"status": {"phase": "Succeeded"}}
        for number in range(self.pods):
            await self.ask("PATCH", f"{PODS}/p{number}/status", patch, MERGE)
            await asyncio.sleep(0)

    async def ask(self, method: str, path: str, body: Any, type_: str = "application/json") -> None:
        answer = await self.server.ask(method, path, body, content_type=type_)
        assert answer.code in (200, 201), answer


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + 300
    while not holds():
        if time.perf_counter() > deadline:
            raise TimeoutError("not done in five minutes")
        await asyncio.sleep(0.005)


def report(what: str, pods: int, took: Took) -> None:
    print(
        f"{what:45} {pods / took.seconds:8.0f}/s {took.cpu_seconds / pods * 1000:8.2f} ms CPU each",
        flush=True,
    )


async def yardsticks(pods: int) -> None:
    async with LocalServer() as server:
        bench = Bench(server, pods)
        report("API server alone: pods created", pods, await timed(bench.create_pods))
        took = await timed(bench.make_claims_by_hand)
        report("API server alone: claims created, pods told", pods, took)


async def pods_there_before(pods: int, profile: cProfile.Profile | None) -> None:
    """All work waits when the controller starts; then all pods finish at once."""
    async with LocalServer() as server:
        bench = Bench(server, pods)
        await bench.set_up()
        await bench.create_pods()
        started: list[Running] = []

        async def make() -> None:
            started.append(Running(server))
            await until(lambda: len(started[0].told) == pods)

        if profile is not None:
            profile.enable()
        took = await timed(make)
        if profile is not None:
            profile.disable()
        report("claims made for pods that wait", pods, took)
        (running,) = started
        await bench.use_claims()

        async def free() -> None:
            await bench.finish_pods()
            await until(lambda: not len(running.claims))

        report("pods finished, claims freed and deleted", pods, await timed(free))
        await running.stop()


async def pods_that_come(pods: int) -> None:
    async with LocalServer() as server:
        bench = Bench(server, pods)
        await bench.set_up()
        running = Running(server)

        async def make() -> None:
            await bench.create_pods()
            await until(lambda: len(running.told) == pods)

        report("pods created, claims made meanwhile", pods, await timed(make))
        await running.stop()


async def run(options: argparse.Namespace) -> None:
    pods: int = options.pods
    profile = cProfile.Profile() if options.profile else None
    await yardsticks(pods)
    await pods_there_before(pods, profile)
    await pods_that_come(pods)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MiB, API server included")
    if profile is not None:
        profile.dump_stats(options.profile)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--profile", default="")
    with component_runner() as runner:
        runner.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
