"""The scheduler and an API server: everything gets scheduled in the end, and no device is ever held twice."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.identities import DeviceId, ObjectKey
from allot.backoff import Backoff
from allot.client.client import Client
from allot.client.connection import connect
from allot.client.errors import ClientError
from allot.client.in_process import InProcessTransport
from allot.client.options import DeleteOptions, PatchType
from allot.client.resources import EVENTS, PODS, RESOURCE_CLAIMS
from allot.client.retries import RetryPolicy
from allot.client.transport import JSON, Query, Response, Stream, Transport
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.configuration import SchedulerConfiguration
from allot.testing.processes import ApiServerProcess
from allot.testing.servers import TOKEN, LocalServer
from tests.integration.test_client_faults import Unreliable

CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
QUICK = SchedulerConfiguration(initial_backoff_seconds=0.01, max_backoff_seconds=0.2)


class Cluster:
    """An API server seen through a client: short ways to say what is there, and to look at it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._start = ""

    # --- what is there ---

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        response = await self.client.request(
            "POST", path, body=msgspec.json.encode(body), may_repeat=True
        )
        found: dict[str, Any] = msgspec.json.decode(response.body)
        return found

    async def add_class(self, name: str = "gpu") -> None:
        await self.post(CLASSES, {"metadata": {"name": name}, "spec": {}})

    async def add_nodes(self, count: int, devices: int, cpu: str = "64") -> None:
        for number in range(count):
            name = f"n{number}"
            status = {"allocatable": {"cpu": cpu, "memory": "256Gi", "pods": "1000"}}
            await self.post("/api/v1/nodes", {"metadata": {"name": name}, "status": status})
            patch = {"status": status | {"conditions": [{"type": "Ready", "status": "True"}]}}
            await self._patch(f"/api/v1/nodes/{name}/status", patch)
            await self._patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
            if devices:
                await self.add_slice(name, devices)

    async def _patch(self, path: str, patch: Mapping[str, Any]) -> None:
        body, kind = msgspec.json.encode(patch), PatchType.MERGE.value
        await self.client.request("PATCH", path, None, body, kind, may_repeat=True)

    async def add_slice(self, node: str, devices: int) -> None:
        spec = {
            "driver": "gpu.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
        }
        await self.post(SLICES, {"metadata": {"name": node}, "spec": spec})

    async def add_claim(self, name: str, class_name: str = "gpu") -> None:
        request = {"name": "r", "exactly": {"deviceClassName": class_name}}
        spec = {"devices": {"requests": [request]}}
        await self.post(CLAIMS, {"metadata": {"name": name}, "spec": spec})

    async def add_pod(self, name: str, *claims: str, cpu: str = "1m") -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        entries = [{"name": claim, "resourceClaimName": claim} for claim in claims]
        spec = {"containers": [container], "resourceClaims": entries}
        await self.post(
            "/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec}
        )

    async def add_pods(self, count: int, prefix: str = "") -> None:
        """Pods with a claim each."""
        for number in range(count):
            await self.add_claim(f"{prefix}c{number}")
            await self.add_pod(f"{prefix}p{number}", f"{prefix}c{number}")

    async def remove_pod(self, name: str) -> None:
        """A pod goes, and with it its reservations, as the controller would do that."""
        pod = await self.pod(name)
        await self.client.delete(
            PODS, ObjectKey("default", name), DeleteOptions(grace_period_seconds=0)
        )
        for claim in await self.claims():
            if any(consumer.uid == pod.metadata.uid for consumer in claim.status.reserved_for):
                patch = {"status": {"reservedFor": [{"$patch": "delete", "uid": pod.metadata.uid}]}}
                key = ObjectKey("default", claim.metadata.name)
                await self.client.patch(
                    RESOURCE_CLAIMS, key, patch, PatchType.STRATEGIC, subresource="status"
                )

    # --- looking ---

    async def pods(self) -> list[Pod]:
        return (await self.client.list(PODS)).items

    async def pod(self, name: str) -> Pod:
        return await self.client.get(PODS, ObjectKey("default", name))

    async def claims(self) -> list[ResourceClaim]:
        return (await self.client.list(RESOURCE_CLAIMS)).items

    async def claim(self, name: str) -> ResourceClaim:
        return await self.client.get(RESOURCE_CLAIMS, ObjectKey("default", name))

    async def bound(self) -> list[Pod]:
        return [pod for pod in await self.pods() if pod.node_name]

    async def until_bound(self, count: int, seconds: float = 120.0) -> None:
        async def enough() -> bool:
            return len(await self.bound()) >= count

        try:
            await until(enough, seconds)
        except TimeoutError:
            left = [pod.data for pod in await self.pods() if not pod.node_name]
            raise AssertionError(f"{len(left)} are not scheduled, such as {left[:1]}") from None

    async def condition(self, name: str) -> tuple[str, str, str]:
        """Status, reason and message of a pod's PodScheduled condition."""
        for found in (await self.pod(name)).get("status", "conditions", default=()):
            if found["type"] == "PodScheduled":
                return found["status"], found.get("reason", ""), found.get("message", "")
        return "", "", ""

    # --- what must hold ---

    async def begin(self) -> None:
        """Remember where the history begins that `check` reads."""
        self._start = (await self.client.list(RESOURCE_CLAIMS)).resource_version

    async def check(self) -> None:
        """No device was held twice at any revision, and every pod has what it was promised."""
        await self._check_history()
        pods = {pod.metadata.uid: pod for pod in await self.pods()}
        for claim in await self.claims():
            assert claim.status.allocation is None or claim.status.reserved_for
            for consumer in claim.status.reserved_for:
                _check_place(claim, pods[consumer.uid])
        reserved = {
            (consumer.uid, claim.metadata.name)
            for claim in await self.claims()
            for consumer in claim.status.reserved_for
        }
        for uid, pod in pods.items():
            for entry in pod.get("spec", "resourceClaims", default=()):
                assert (uid, entry["resourceClaimName"]) in reserved
            assert (await self.condition(pod.metadata.name))[0] == "True"

    async def _check_history(self) -> None:
        await self.add_claim("the-end")
        holders: dict[DeviceId, str] = {}
        held: dict[str, set[DeviceId]] = {}
        async with self.client.watch(RESOURCE_CLAIMS, resource_version=self._start) as batches:
            async for batch in batches:
                for event in batch:
                    claim = event.object
                    if claim is None:
                        continue
                    if claim.metadata.name == "the-end":
                        return
                    uid = claim.metadata.uid
                    now = set() if event.type == "DELETED" else _devices(claim)
                    for device in held.get(uid, set()) - now:
                        del holders[device]
                    for device in now:
                        assert holders.setdefault(device, uid) == uid, (device, claim)
                    held[uid] = now


def _devices(claim: ResourceClaim) -> set[DeviceId]:
    if claim.status.allocation is None:
        return set()
    return {
        DeviceId(result.driver, result.pool, result.device)
        for result in claim.status.allocation.devices.results
    }


def _check_place(claim: ResourceClaim, pod: Pod) -> None:
    """Pools are called like their nodes."""
    assert {device.pool for device in _devices(claim)} == {pod.node_name}


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 120.0) -> None:
    async with asyncio.timeout(seconds):
        while not await holds():
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def scheduling(client: Client) -> AsyncIterator[SchedulerProcess]:
    """A scheduler that runs meanwhile."""
    process = SchedulerProcess(client, QUICK)
    task = asyncio.create_task(process.run())
    try:
        yield process
    finally:
        task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled():
            task.result()


def played(story: Callable[[Cluster, LocalServer], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with LocalServer(window=100_000) as server:
            cluster = Cluster(Client(InProcessTransport(server.server.app, TOKEN)))
            await cluster.begin()
            await story(cluster, server)

    asyncio.run(main())


def another_client(server: LocalServer) -> Client:
    return Client(InProcessTransport(server.server.app, TOKEN))


# --- many pods ---


def test_800_pods_for_800_devices() -> None:
    async def story(cluster: Cluster, server: LocalServer) -> None:
        await cluster.add_class()
        await cluster.add_nodes(8, 100)
        async with scheduling(another_client(server)):
            await cluster.add_pods(800)
            await cluster.until_bound(800)
        await cluster.check()

    played(story)


def test_what_does_not_fit_waits_for_what_goes() -> None:
    async def story(cluster: Cluster, server: LocalServer) -> None:
        await cluster.add_class()
        await cluster.add_nodes(2, 2)
        async with scheduling(another_client(server)):
            await cluster.add_pods(5)
            await cluster.until_bound(4)
            (waiting,) = [pod for pod in await cluster.pods() if not pod.node_name]
            name = waiting.metadata.name

            async def is_told() -> bool:
                return (await cluster.condition(name))[1] == "Unschedulable"

            await until(is_told)
            status, _, message = await cluster.condition(name)
            assert status == "False"
            assert message.startswith("0/2 nodes are available: 2 cannot allocate all claims.")
            assert (
                "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
                in message
            )

            gone = (await cluster.bound())[0].metadata.name
            await cluster.remove_pod(gone)
            freed = ObjectKey("default", gone.replace("p", "c"))
            patch = {"status": {"allocation": None}}
            await cluster.client.patch(RESOURCE_CLAIMS, freed, patch, subresource="status")
            await cluster.until_bound(4)
        await cluster.check()

    played(story)


def test_256_pods_share_a_claim_and_the_257th_waits() -> None:
    async def story(cluster: Cluster, server: LocalServer) -> None:
        await cluster.add_class()
        await cluster.add_nodes(2, 1)
        await cluster.add_claim("shared")
        async with scheduling(another_client(server)):
            for number in range(257):
                await cluster.add_pod(f"p{number}", "shared")
            await cluster.until_bound(256)
            (waiting,) = [pod for pod in await cluster.pods() if not pod.node_name]
            name = waiting.metadata.name

            async def is_told() -> bool:
                return "reservedFor" in (await cluster.condition(name))[2]

            await until(is_told)
            status, reason, message = await cluster.condition(name)
            assert (status, reason) == ("False", "SchedulerError")
            assert 'running PreBind plugin "DynamicResources": add reservation to claim' in message
            assert len((await cluster.claim("shared")).status.reserved_for) == 256

            await cluster.remove_pod((await cluster.bound())[0].metadata.name)
            await cluster.until_bound(256)
            assert (await cluster.pod(name)).node_name
        assert len({pod.node_name for pod in await cluster.pods()}) == 1
        await cluster.check()

    played(story)


def test_two_schedulers_at_once() -> None:
    async def story(cluster: Cluster, server: LocalServer) -> None:
        await cluster.add_class()
        await cluster.add_nodes(4, 50)
        async with scheduling(another_client(server)), scheduling(another_client(server)):
            await cluster.add_pods(200)
            await cluster.until_bound(200)
        await cluster.check()

    played(story)


# --- what wakes pods ---


def test_pods_that_come_before_everything_they_need() -> None:
    async def story(cluster: Cluster, server: LocalServer) -> None:
        async with scheduling(another_client(server)) as process:
            await cluster.add_pod("p", "c")
            await asyncio.sleep(0.05)
            assert (await cluster.condition("p")) == ("", "", ""), "gated pods are silent"
            await cluster.add_claim("c")

            async def says(text: str) -> bool:
                return text in (await cluster.condition("p"))[2]

            await until(lambda: says("no nodes available to schedule pods"))
            await cluster.add_nodes(1, 0)
            await until(lambda: says("request r: device class gpu does not exist"))
            await cluster.add_class()
            await until(lambda: says("cannot allocate all claims"))
            await cluster.add_slice("n0", 1)
            await cluster.until_bound(1)
            lengths = process.queue.lengths()
            assert sum(lengths.values()) == 0
        await cluster.check()

    played(story)


def test_a_claim_tied_to_a_full_node_is_given_back() -> None:
    async def story(cluster: Cluster, server: LocalServer) -> None:
        await cluster.add_class()
        await cluster.add_nodes(2, 1, cpu="1")
        await cluster.add_claim("c")
        async with scheduling(another_client(server)):
            await cluster.add_pod("first", "c", cpu="600m")
            await cluster.until_bound(1)
            node = (await cluster.pod("first")).node_name
            await cluster.remove_pod("first")
            assert (await cluster.claim("c")).status.allocation is not None
            await cluster.add_pod("filler-0", cpu="500m")
            await cluster.add_pod("filler-1", cpu="500m")
            await cluster.until_bound(2)
            fillers = {pod.node_name: pod.metadata.name for pod in await cluster.bound()}
            assert len(fillers) == 2, "one on each node"
            other = next(name for name in fillers if name != node)
            await cluster.remove_pod(fillers[other])

            await cluster.add_pod("second", "c", cpu="600m")
            await cluster.until_bound(2)
            assert (await cluster.pod("second")).node_name == other
        await cluster.check()
        notes = {
            event.get("note", default="")
            for event in (await cluster.client.list(EVENTS)).items
            if event.get("reason") == "FailedScheduling"
        }
        assert any("deallocation of ResourceClaim completed" in note for note in notes)

    played(story)


# --- trouble ---


def test_pods_are_scheduled_while_claims_are_updated_all_the_time() -> None:
    async def story(cluster: Cluster, server: LocalServer) -> None:
        await cluster.add_class()
        await cluster.add_nodes(2, 20)
        chance = random.Random(1)  # noqa: S311
        touched = 0

        async def touch() -> None:
            nonlocal touched
            while True:
                for claim in await cluster.claims():
                    if chance.random() < 0.3:
                        key = ObjectKey("default", claim.metadata.name)
                        labels = {"metadata": {"labels": {"touched": str(touched)}}}
                        await cluster.client.patch(RESOURCE_CLAIMS, key, labels)
                        touched += 1
                await asyncio.sleep(0)

        touching = asyncio.create_task(touch())
        async with scheduling(another_client(server)):
            await cluster.add_pods(40)
            await cluster.until_bound(40)
        touching.cancel()
        await asyncio.wait((touching,))
        assert touched > 40
        await cluster.check()

    played(story)


@pytest.mark.parametrize("seed", range(3))
def test_lost_answers_refused_requests_and_cut_watches(seed: int) -> None:
    async def story(cluster: Cluster, server: LocalServer) -> None:
        await cluster.add_class()
        await cluster.add_nodes(3, 20)
        way = Unreliable(InProcessTransport(server.server.app, TOKEN), seed)
        hasty = RetryPolicy(max_attempts=4, backoff=Backoff(0.001, 0.01))
        async with scheduling(Client(way, retry=hasty)):
            for number in range(6):
                await cluster.add_pods(10, f"{number}-")
                await asyncio.sleep(0.05)
                way.cut()
            await cluster.until_bound(60)
        assert way.faults > 20
        await cluster.check()

    played(story)


class LosesItsClaim(InProcessTransport):
    """Before p0's claim is written, p1 comes and finds nothing; then p0 and its claim go."""

    cluster: Cluster
    is_done = False

    async def request(self, method: str, path: str, *rest: Any, **more: Any) -> Response:
        if method == "PUT" and path.endswith("/c0") and not self.is_done:
            self.is_done = True
            await self.cluster.add_pod("p1", "c1")
            await until(self._is_refused)
            await self.cluster.client.delete(PODS, ObjectKey("default", "p0"))
            await self.cluster.client.delete(RESOURCE_CLAIMS, ObjectKey("default", "c0"))
        return await super().request(method, path, *rest, **more)

    async def _is_refused(self) -> bool:
        return (await self.cluster.condition("p1"))[1] == "Unschedulable"


def test_devices_of_a_binding_that_failed_go_to_the_next_pod() -> None:
    """Only the scheduler knows that the deleted claim was to have a device."""

    async def story(cluster: Cluster, server: LocalServer) -> None:
        await cluster.add_class()
        await cluster.add_nodes(1, 1)
        await cluster.add_claim("c0")
        await cluster.add_claim("c1")
        way = LosesItsClaim(server.server.app, TOKEN)
        way.cluster = cluster
        async with scheduling(Client(way)):
            await cluster.add_pod("p0", "c0")
            await cluster.until_bound(1)
            assert (await cluster.pod("p1")).node_name
        await cluster.check()

    played(story)


class Mortal:
    """The way to the server of a process that dies after so many writes."""

    def __init__(self, transport: Transport, writes: int, *, answered: bool) -> None:
        """`answered` says whether it still hears that its last write was done, or dies before sending it."""
        self._transport = transport
        self._left = writes
        self._answered = answered
        self.died = asyncio.Event()

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        is_last = False
        is_event = "/events" in path
        if method != "GET" and not is_event:
            self._left -= 1
            is_last = self._left == 0
        if (self._left < 0 and not is_event) or (is_last and not self._answered):
            await self._die()
        response = await self._transport.request(method, path, query, body, content_type, headers)
        if is_last:
            await self._die()
        return response

    async def _die(self) -> None:
        self.died.set()
        await asyncio.Event().wait()

    def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        idle_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> contextlib.AbstractAsyncContextManager[Stream]:
        return self._transport.stream(path, query, idle_seconds=idle_seconds, headers=headers)

    async def close(self) -> None:
        await self._transport.close()


async def die_often(cluster: Cluster, server: LocalServer, deaths: int) -> None:
    """Every scheduler dies after some writes, and leaves the rest to the next."""
    await cluster.add_class()
    await cluster.add_nodes(3 * deaths // 48, 48)
    made = 0
    for death in range(deaths):
        for _ in range(3):
            await cluster.add_claim(f"c{made}")
            await cluster.add_pod(f"p{made}", f"c{made}")
            made += 1
        way = InProcessTransport(server.server.app, TOKEN)
        mortal = Mortal(way, death % 8 + 1, answered=bool(death // 8 % 2))
        async with scheduling(Client(mortal)), asyncio.timeout(120):
            await mortal.died.wait()
    async with scheduling(another_client(server)):
        await cluster.until_bound(made)
    await cluster.check()


def test_schedulers_that_die_between_two_writes() -> None:
    played(lambda cluster, server: die_often(cluster, server, 32))


@pytest.mark.slow
def test_schedulers_that_die_between_two_writes_very_often() -> None:
    played(lambda cluster, server: die_often(cluster, server, 160))


def test_an_api_server_that_is_killed_under_load(tmp_path: Path) -> None:
    kill(tmp_path, pods=120, kills=2)


@pytest.mark.slow
def test_an_api_server_that_is_killed_again_and_again(tmp_path: Path) -> None:
    kill(tmp_path, pods=600, kills=8)


def kill(directory: Path, pods: int, kills: int) -> None:
    async def main(server: ApiServerProcess) -> None:
        retry = RetryPolicy(max_attempts=100, backoff=Backoff(0.02, 0.2))
        client = connect(server.kubeconfig)
        cluster = Cluster(Client(client.transport, retry=retry))
        await cluster.begin()
        await cluster.add_class()
        await cluster.add_nodes(pods // 60, 60)

        async def create() -> None:
            for number in range(pods):
                for attempt in (cluster.add_claim(f"c{number}"), add_pod(number)):
                    with contextlib.suppress(ClientError):  # done before its answer was lost
                        await attempt

        async def add_pod(number: int) -> None:
            await cluster.add_pod(f"p{number}", f"c{number}")

        async with scheduling(client):
            creating = asyncio.create_task(create())
            for number in range(1, kills + 1):
                enough = pods * number // (kills + 1)

                async def has_come(enough: int = enough) -> bool:
                    return len(await cluster.bound()) >= enough

                await until(has_come, 60)
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
            await creating
            await cluster.until_bound(pods, 60)
        await cluster.check()
        await client.close()

    with ApiServerProcess(directory) as server:
        asyncio.run(main(server))
