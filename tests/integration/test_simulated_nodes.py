"""Simulated nodes and their driver with an API server, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import timedelta
from typing import Any

import msgspec
import pytest
import yaml

from allot.api.core import Node, Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.slices import ResourceSlice
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.client.options import DeleteOptions, PatchType
from allot.client.resources import LEASES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from allot.client.transport import Response
from allot.driver.publisher import HARDWARE_LABEL, SlicePublisher
from allot.driver.reading import read_hardware
from allot.features import CONSUMABLE_CAPACITY, DEFAULTS, FeatureGates, with_overrides
from allot.kubelet.registration import ForeignNodeError, NodeDescription, register
from allot.kubelet.settings import KubeletSettings
from allot.kubelet.simulated_nodes import NodeSimulation
from allot.testing.servers import TOKEN, LocalServer
from allot.testing.virtual_time import START, VirtualClock, run_in_virtual_time

PODS_PATH = "/api/v1/namespaces/default/pods"
SIMULATED = {"allot.dev/simulated": "true"}


class Story:
    """A server, a client, and short ways to say what is there."""

    def __init__(self, server: LocalServer) -> None:
        self.server = server
        self.client = self.new_client()

    def new_client(self) -> Client:
        return Client(InProcessTransport(self.server.server.app, TOKEN), clock=VirtualClock())

    async def add_node(self, name: str, labels: dict[str, str], **spec: Any) -> None:
        node = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        await self.client.create(NODES, Node(node))

    async def add_pod(
        self, name: str, node: str, annotations: dict[str, str] | None = None, **spec: Any
    ) -> None:
        pod = {
            "metadata": {"namespace": "default", "name": name, "annotations": annotations or {}},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}], **spec},
        }
        await self.client.create(PODS, Pod(pod))

    async def node(self, name: str) -> Node:
        return await self.client.get(NODES, ObjectKey("", name))

    async def pod(self, name: str) -> Pod | None:
        return await self.client.find(PODS, ObjectKey("default", name))

    async def phase(self, name: str) -> str:
        pod = await self.pod(name)
        return pod.phase if pod is not None else "gone"

    async def lease(self, name: str) -> RawObject | None:
        return await self.client.find(LEASES, ObjectKey("kube-node-lease", name))

    async def slices(self) -> list[ResourceSlice]:
        return (await self.client.list(RESOURCE_SLICES)).items

    @contextlib.asynccontextmanager
    async def nodes(self, settings: KubeletSettings | None = None) -> AsyncIterator[None]:
        simulation = NodeSimulation(self.new_client(), settings or KubeletSettings())
        async with running(simulation.run()):
            yield


@contextlib.asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def tell(
    story: Callable[[Story], Coroutine[Any, Any, None]], gates: FeatureGates = DEFAULTS
) -> None:
    async def main() -> None:
        async with LocalServer(gates=gates) as server, asyncio.timeout(24 * 3600):
            await story(Story(server))

    run_in_virtual_time(main())


def is_ready(node: Node) -> bool:
    conditions = node.get("status", "conditions", default=())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


# --- nodes ---


def test_any_labelled_node_is_served_whenever_it_comes() -> None:
    async def story(story: Story) -> None:
        not_ready = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        own = {"key": "example.com/own", "effect": "NoSchedule"}
        await story.add_node("early", SIMULATED, taints=[not_ready, own])
        await story.add_node("real", {})
        async with story.nodes():
            await asyncio.sleep(1)
            await story.add_node("late", SIMULATED)
            await asyncio.sleep(1)
            for name in ("early", "late"):
                node = await story.node(name)
                assert is_ready(node)
                assert node.metadata.labels["kubernetes.io/hostname"] == name
                lease = await story.lease(name)
                assert lease is not None
                assert lease.get("spec", "holderIdentity") == name
            assert (await story.node("early")).taints == [own]
            assert not (await story.node("real")).get("status", "conditions")
            assert await story.lease("real") is None

    tell(story)


def test_every_node_if_so_wished() -> None:
    async def story(story: Story) -> None:
        await story.add_node("any", {})
        async with story.nodes(KubeletSettings(all_nodes=True)):
            await asyncio.sleep(1)
            assert is_ready(await story.node("any"))

    tell(story)


def test_hearts_beat_and_nothing_else_is_written() -> None:
    async def story(story: Story) -> None:
        for number in range(10):
            await story.add_node(f"n{number}", SIMULATED)
        async with story.nodes():
            await asyncio.sleep(60)
            before = {node.metadata.name: node for node in (await story.client.list(NODES)).items}
            start = (await story.client.list(LEASES)).resource_version
            await asyncio.sleep(100)
            after = await story.client.list(LEASES)
            for node in (await story.client.list(NODES)).items:
                assert node == before[node.metadata.name]
            assert int(after.resource_version) - int(start) == 100  # ten nodes, ten times
            renewed = {lease.get("spec", "renewTime")[:23] for lease in after.items}
            assert len(renewed) > 5  # not all at once
            await asyncio.sleep(300)
            for node in (await story.client.list(NODES)).items:
                assert node != before[node.metadata.name]

    tell(story)


def test_a_node_without_power_is_left_alone_until_it_is_back() -> None:
    async def story(story: Story) -> None:
        await story.add_node("n", SIMULATED)
        async with story.nodes():
            await asyncio.sleep(1)
            patch = {"metadata": {"annotations": {"allot.dev/offline": "true"}}}
            await story.client.patch(NODES, ObjectKey("", "n"), patch)
            await asyncio.sleep(1)
            lease = await story.lease("n")
            lost = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
            await story.client.patch(NODES, ObjectKey("", "n"), lost, subresource="status")
            await story.add_pod("p", "n")
            await asyncio.sleep(100)
            assert await story.lease("n") == lease
            assert not is_ready(await story.node("n"))
            assert await story.phase("p") == "Pending"
            patch = {"metadata": {"annotations": {"allot.dev/offline": "false"}}}
            await story.client.patch(NODES, ObjectKey("", "n"), patch)
            await asyncio.sleep(11)
            assert await story.lease("n") != lease
            assert is_ready(await story.node("n"))
            assert await story.phase("p") == "Running"

    tell(story)


# --- pods ---


def test_pods_run_end_and_go() -> None:
    async def story(story: Story) -> None:
        await story.add_node("n", SIMULATED)
        await story.add_node("real", {})
        async with story.nodes():
            await story.add_pod("forever", "n")
            await story.add_pod("elsewhere", "real")
            await story.add_pod("job", "n", {"allot.dev/run-seconds": "30"}, restartPolicy="Never")
            await story.add_pod(
                "crash", "n", {"allot.dev/run-seconds": "5", "allot.dev/exit-code": "1"}
            )
            await asyncio.sleep(1)
            assert [await story.phase(name) for name in ("forever", "job", "crash")] == [
                "Running"
            ] * 3
            assert await story.phase("elsewhere") == "Pending"
            await asyncio.sleep(30)
            assert await story.phase("job") == "Succeeded"
            crash = await story.pod("crash")
            assert crash is not None
            assert crash.get("status", "containerStatuses", 0, "restartCount") == 2
            await story.client.delete(PODS, ObjectKey("default", "forever"))
            await asyncio.sleep(1)
            assert await story.phase("forever") == "gone"

    tell(story)


def test_pods_have_addresses_of_their_own() -> None:
    async def story(story: Story) -> None:
        await story.add_node("n", SIMULATED)
        async with story.nodes():
            for number in range(20):
                await story.add_pod(f"p{number}", "n")
            await story.add_pod("host", "n", hostNetwork=True)
            await asyncio.sleep(1)
            host = await story.pod("host")
            assert host is not None
            assert host.get("status", "podIP") == host.get("status", "hostIP")
            pods = (await story.client.list(PODS)).items
            assert len({pod.get("status", "podIP") for pod in pods}) == 21

    tell(story)


def test_who_is_started_again_goes_on() -> None:
    async def story(story: Story) -> None:
        await story.add_node("n", SIMULATED)
        async with story.nodes():
            await story.add_pod("job", "n", {"allot.dev/run-seconds": "60"}, restartPolicy="Never")
            await story.add_pod("going", "n")
            await asyncio.sleep(20)
            running = await story.pod("job")
        await story.client.delete(PODS, ObjectKey("default", "going"))
        await asyncio.sleep(20)
        assert await story.phase("going") == "Running"
        async with story.nodes():
            await asyncio.sleep(10)
            assert await story.pod("job") == running
            assert await story.phase("going") == "gone"
            await asyncio.sleep(20)
            assert await story.phase("job") == "Succeeded"
            finished = await story.pod("job")
            assert finished is not None
            ended = finished.get("status", "containerStatuses", 0, "state", "terminated")
            assert ended["finishedAt"] == (START + timedelta(seconds=60)).strftime("%FT%TZ")

    tell(story)


def test_two_at_once_do_not_fight() -> None:
    async def story(story: Story) -> None:
        await story.add_node("n", SIMULATED)
        for number in range(5):
            await story.add_pod(f"p{number}", "n")
        async with story.nodes(), story.nodes():
            await asyncio.sleep(30)
            before = (await story.client.list(PODS)).items
            node = await story.node("n")
            assert {pod.phase for pod in before} == {"Running"}
            await asyncio.sleep(100)
            assert (await story.client.list(PODS)).items == before
            assert await story.node("n") == node

    tell(story)


class Forgetful(InProcessTransport):
    """To a server of an older version, which leaves out what it does not know."""

    async def request(self, method: str, path: str, *rest: Any, **more: Any) -> Response:
        query, body, *others = (*rest, None, None)[: max(2, len(rest))]
        if method == "PUT" and path.endswith("/status") and body is not None:
            sent = msgspec.json.decode(body)
            sent["status"].pop("observedGeneration", None)
            body = msgspec.json.encode(sent)
        return await super().request(method, path, query, body, *others, **more)


def test_a_server_that_does_not_keep_everything_is_not_told_over_and_over() -> None:
    async def story(story: Story) -> None:
        await story.add_node("n", SIMULATED)
        await story.add_pod("p", "n", {"allot.dev/run-seconds": "50"}, restartPolicy="Never")
        client = Client(Forgetful(story.server.server.app, TOKEN), clock=VirtualClock())
        async with running(NodeSimulation(client).run()):
            await asyncio.sleep(10)
            pod = await story.pod("p")
            assert pod is not None
            assert pod.phase == "Running"
            await asyncio.sleep(30)
            assert await story.pod("p") == pod
            await asyncio.sleep(20)
            assert await story.phase("p") == "Succeeded"

    tell(story)


def test_finalizers_hold_a_stopped_pod() -> None:
    async def story(story: Story) -> None:
        await story.add_node("n", SIMULATED)
        async with story.nodes():
            await story.add_pod("p", "n")
            key = ObjectKey("default", "p")
            await asyncio.sleep(1)
            held = {"metadata": {"finalizers": ["example.com/hold"]}}
            await story.client.patch(PODS, key, held)
            await story.client.delete(PODS, key)
            await asyncio.sleep(60)
            assert await story.phase("p") == "Failed"
            await story.client.patch(PODS, key, {"metadata": {"finalizers": None}})
            await asyncio.sleep(1)
            assert await story.phase("p") == "gone"

    tell(story)


def test_a_pod_waits_until_its_claim_is_its_own() -> None:
    async def story(story: Story) -> None:
        await story.add_node("n", SIMULATED)
        claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
        await story.server.post(
            claims, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
        )
        async with story.nodes():
            await story.add_pod("p", "n", resourceClaims=[{"name": "x", "resourceClaimName": "c"}])
            await asyncio.sleep(10)
            pod = await story.pod("p")
            assert pod is not None
            assert pod.phase == "Pending"
            waiting = pod.get("status", "containerStatuses", 0, "state", "waiting", "reason")
            assert waiting == "ContainerCreating"
            events = (await story.server.get("/api/v1/namespaces/default/events"))["items"]
            assert [event["reason"] for event in events] == ["FailedPrepareDynamicResources"]
            assert "is not allowed to use ResourceClaim c (" in events[0]["message"]
            result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "g"}
            reserved = {"resource": "pods", "name": "p", "uid": pod.metadata.uid}
            status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [reserved]}
            await story.client.patch(
                RESOURCE_CLAIMS,
                ObjectKey("default", "c"),
                {"status": status},
                PatchType.MERGE,
                subresource="status",
            )
            await asyncio.sleep(1)
            assert await story.phase("p") == "Running"

    tell(story)


# --- hardware ---

HARDWARE = """
nodes: {count: 2, capacity: {cpu: 64}}
pools:
- driver: gpu.example.com
  devices:
  - {name: "gpu-{i}", count: 130}
- driver: gpu.example.com
  name: rack
  allNodes: true
  devices: [{name: shared}]
deviceClasses: [{name: gpu.example.com}]
"""


def publisher(story: Story, text: str = HARDWARE, count: int | None = None) -> Any:
    """Nodes and devices of a description."""
    hardware = read_hardware(yaml.safe_load(text), "hw.yaml", "hw", count)

    async def run() -> None:
        client = story.new_client()
        nodes = [NodeDescription(name, *features) for name, features in hardware.described_nodes()]
        await register(client, nodes, (HARDWARE_LABEL, hardware.name))
        await SlicePublisher(client, hardware).run()

    return running(run())


def summary(slices: list[ResourceSlice]) -> list[tuple[str, str, int, int]]:
    """Pool, node, generation and number of devices, by name."""
    return [
        (
            s.spec.pool.name,
            s.spec.node_name or "",
            s.spec.pool.generation,
            len(s.spec.devices or ()),
        )
        for s in sorted(slices, key=lambda s: (s.spec.pool.name, s.metadata.name))
    ]


def test_hardware_is_published_once_and_belongs_to_its_nodes() -> None:
    async def story(story: Story) -> None:
        async with publisher(story):
            await asyncio.sleep(1)
            first = await story.slices()
        assert summary(first) == [
            ("hw-0", "hw-0", 1, 128),
            ("hw-0", "hw-0", 1, 2),
            ("hw-1", "hw-1", 1, 128),
            ("hw-1", "hw-1", 1, 2),
            ("rack", "", 1, 1),
        ]
        node = await story.node("hw-0")
        assert node.get("status", "capacity", "cpu") == "64"
        (owner,) = next(s for s in first if s.spec.node_name == "hw-0").metadata.owner_references
        assert (owner.uid, owner.controller) == (node.metadata.uid, True)
        assert await story.server.get("/apis/resource.k8s.io/v1/deviceclasses/gpu.example.com")
        async with publisher(story), publisher(story):
            await asyncio.sleep(100)
        assert await story.slices() == first

    tell(story)


def test_changed_hardware_is_published_anew_and_nothing_else() -> None:
    async def story(story: Story) -> None:
        async with publisher(story):
            await asyncio.sleep(1)
            (rack,) = [s for s in await story.slices() if s.spec.pool.name == "rack"]
        async with publisher(story, HARDWARE.replace("130", "300"), count=1):
            await asyncio.sleep(1)
        slices = await story.slices()
        assert summary(slices) == [
            ("hw-0", "hw-0", 2, 128),
            ("hw-0", "hw-0", 2, 128),
            ("hw-0", "hw-0", 2, 44),
            ("rack", "", 1, 1),
        ]
        assert rack in slices
        nodes = (await story.client.list(NODES)).items
        assert [node.metadata.name for node in nodes] == ["hw-0"]

    tell(story)


def test_what_others_do_to_slices_is_put_right() -> None:
    async def story(story: Story) -> None:
        async with publisher(story, count=0):
            await asyncio.sleep(1)
            (rack,) = await story.slices()
            key = ObjectKey("", rack.metadata.name)
            await story.client.delete(RESOURCE_SLICES, key, DeleteOptions(uid=rack.metadata.uid))
            await asyncio.sleep(1)
            assert not await story.slices()
            await asyncio.sleep(60)
            (again,) = await story.slices()
            assert again.spec == rack.spec

    tell(story)


def test_slices_with_dropped_fields_are_not_written_again() -> None:
    async def story(story: Story) -> None:
        text = HARDWARE.replace("{name: shared}", "{name: s, allowMultipleAllocations: true}")
        async with publisher(story, text, count=0):
            await asyncio.sleep(1)
            before = await story.slices()
            assert summary(before) == [("rack", "", 1, 1)]
            await asyncio.sleep(200)
            assert await story.slices() == before

    tell(story, with_overrides({CONSUMABLE_CAPACITY: False}))


def test_slices_come_back_with_their_node() -> None:
    async def story(story: Story) -> None:
        async with publisher(story, count=1):
            await asyncio.sleep(1)
            node = await story.node("hw-0")
            await story.client.delete(NODES, ObjectKey("", "hw-0"))
            await asyncio.sleep(1)
            labels = dict(node.metadata.labels)
            await story.add_node("hw-0", labels)
            await asyncio.sleep(1)
            uid = (await story.node("hw-0")).metadata.uid
            owners = {
                owner.uid
                for slice_ in await story.slices()
                for owner in slice_.metadata.owner_references
            }
            assert owners == {uid}

    tell(story)


def test_a_real_node_is_never_taken() -> None:
    async def story(story: Story) -> None:
        await story.add_node("server", {})
        description = NodeDescription("server", labels={"a": "b"})
        with pytest.raises(ForeignNodeError, match="node server already exists"):
            await register(story.client, [description], (HARDWARE_LABEL, "hw"))
        assert (await story.node("server")).metadata.labels == {}

    tell(story)
