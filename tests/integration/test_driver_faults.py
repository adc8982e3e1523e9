"""Faults of simulated drivers on command, and pods of drivers that are not registered, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from prometheus_client import generate_latest

from allot.api.identities import ObjectKey
from allot.client.resources import NODES, PODS, RESOURCE_CLAIMS
from allot.features import (
    DEFAULTS,
    NODE_DECLARED_FEATURES,
    OPTIONAL_NODE_OPERATIONS,
    FeatureGates,
    with_overrides,
)
from allot.kubelet.settings import HOLD, SIMULATE, KubeletSettings
from allot.kubelet.simulated_nodes import NodeSimulation
from tests.integration.test_simulated_nodes import SIMULATED, Story, running, tell

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
DRIVER = "gpu.example.com"


async def add_claimed_pod(story: Story, name: str = "p", node: str = "n", **result: Any) -> None:
    """A bound pod, and its claim with a device."""
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    spec = {"devices": {"requests": requests}}
    await story.server.post(CLAIMS, {"metadata": {"name": name}, "spec": spec})
    containers = [{"name": "c", "image": "i", "resources": {"claims": [{"name": "x"}]}}]
    claims = [{"name": "x", "resourceClaimName": name}]
    await story.add_pod(name, node, resourceClaims=claims, containers=containers)
    pod = await story.client.get(PODS, ObjectKey("default", name))
    device = {"request": "r", "driver": DRIVER, "pool": node, "device": f"gpu-{name}", **result}
    reserved = {"resource": "pods", "name": name, "uid": pod.metadata.uid}
    status = {"allocation": {"devices": {"results": [device]}}, "reservedFor": [reserved]}
    await story.client.patch(
        RESOURCE_CLAIMS, ObjectKey("default", name), {"status": status}, subresource="status"
    )


async def annotate(story: Story, **annotations: str | None) -> None:
    change = {f"allot.dev/{name.replace('_', '-')}": text for name, text in annotations.items()}
    await story.client.patch(NODES, ObjectKey("", "n"), {"metadata": {"annotations": change}})


async def failures(story: Story, reason: str = "FailedPrepareDynamicResources") -> list[str]:
    events = (await story.server.get("/api/v1/namespaces/default/events"))["items"]
    return [event["message"] for event in events if event["reason"] == reason]


def on_a_node(
    story: Callable[[Story], Coroutine[Any, Any, None]],
    settings: KubeletSettings | None = None,
    gates: FeatureGates = DEFAULTS,
) -> None:
    async def told(told: Story) -> None:
        await told.add_node("n", SIMULATED)
        async with told.nodes(settings):
            await asyncio.sleep(1)
            await story(told)

    tell(told, gates)


def test_prepare_fails_n_times() -> None:
    async def story(story: Story) -> None:
        await annotate(story, driver_faults=f"{DRIVER} prepare-fails=3")
        await add_claimed_pod(story)
        await asyncio.sleep(1)
        assert await story.phase("p") == "Pending"
        assert (await failures(story))[0] == (
            "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources: "
            "rpc error: code = Unavailable desc = requested by the node's annotation allot.dev/driver-faults"
        )
        await asyncio.sleep(10)
        assert await story.phase("p") == "Running"

    on_a_node(story)


def test_prepare_is_slow() -> None:
    async def story(story: Story) -> None:
        await annotate(story, driver_faults="* prepare-seconds=20")
        await add_claimed_pod(story)
        await asyncio.sleep(19)
        assert await story.phase("p") == "Pending"
        await asyncio.sleep(2)
        assert await story.phase("p") == "Running"
        assert await failures(story) == []

    on_a_node(story)


def test_a_hanging_driver_holds_up_only_its_pods() -> None:
    async def story(story: Story) -> None:
        await annotate(story, driver_faults=f"{DRIVER} prepare-hangs")
        for number in range(30):
            await add_claimed_pod(story, f"p{number}")
        await story.add_pod("free", "n")
        await asyncio.sleep(2)
        assert await story.phase("free") == "Running"
        assert await story.phase("p0") == "Pending"
        await asyncio.sleep(50)
        assert (
            "code = DeadlineExceeded desc = context deadline exceeded" in (await failures(story))[0]
        )
        await annotate(story, driver_faults=None)
        await asyncio.sleep(60)
        assert {await story.phase(f"p{number}") for number in range(30)} == {"Running"}

    on_a_node(story)


def test_a_pod_with_a_hanging_driver_can_be_deleted() -> None:
    async def story(story: Story) -> None:
        await annotate(story, driver_faults=f"{DRIVER} prepare-hangs")
        await add_claimed_pod(story)
        await asyncio.sleep(2)
        await story.client.delete(PODS, ObjectKey("default", "p"))
        await asyncio.sleep(2)
        assert await story.phase("p") == "gone"

    on_a_node(story)


def test_a_pod_whose_claims_cannot_be_unprepared_stays() -> None:
    async def story(story: Story) -> None:
        await add_claimed_pod(story)
        await asyncio.sleep(2)
        await annotate(story, driver_faults=f"{DRIVER} unprepare-fails")
        await story.client.delete(PODS, ObjectKey("default", "p"))
        await asyncio.sleep(100)
        assert await story.phase("p") == "Running"
        assert (
            "Failed to unprepare dynamic resources: unprepare dynamic resources: "
            in (await failures(story, "FailedUnprepareDynamicResources"))[0]
        )
        await annotate(story, driver_faults="")
        await asyncio.sleep(2)
        assert await story.phase("p") == "gone"

    on_a_node(story)


def test_a_driver_is_gone_and_comes_back() -> None:
    async def story(story: Story) -> None:
        await annotate(story, driver_faults=f"{DRIVER} gone")
        await add_claimed_pod(story)
        await asyncio.sleep(5)
        assert await story.phase("p") == "Pending"
        assert (await failures(story))[0].endswith(f"DRA driver {DRIVER} is not registered")
        await annotate(story, driver_faults=None)
        await asyncio.sleep(1)
        assert await story.phase("p") == "Running"

    on_a_node(story)


def test_a_device_is_unhealthy() -> None:
    async def health(story: Story) -> Any:
        pod = await story.pod("p")
        assert pod is not None
        return pod.get("status", "containerStatuses", 0, "allocatedResourcesStatus")

    async def story(story: Story) -> None:
        await add_claimed_pod(story)
        await asyncio.sleep(2)
        assert await health(story) is None
        await annotate(story, driver_faults=f"{DRIVER} unhealthy=gpu-p")
        await asyncio.sleep(2)
        (entry,) = await health(story)
        assert entry["name"] == "claim:x"
        (resource,) = entry["resources"]
        assert resource["resourceID"] == f"{DRIVER}/n/gpu-p"
        assert resource["health"] == "Unhealthy"
        await annotate(story, driver_faults=f"{DRIVER} healthy=gpu-p")
        await asyncio.sleep(2)
        assert (await health(story))[0]["resources"][0]["health"] == "Healthy"

    on_a_node(story)


def test_a_wrong_annotation_is_reported() -> None:
    async def story(story: Story) -> None:
        await annotate(story, driver_faults=f"{DRIVER} explodes")
        await add_claimed_pod(story)
        await asyncio.sleep(5)
        assert await story.phase("p") == "Running"
        assert (
            "'explodes' is not a fault; available:"
            in (await failures(story, "InvalidAnnotation"))[0]
        )

    on_a_node(story)


SLICES = "/apis/resource.k8s.io/v1/resourceslices"


async def publish(story: Story, name: str, *devices: str, **place: Any) -> None:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "devices": [{"name": each} for each in devices]}
    await story.server.post(SLICES, {"metadata": {"name": name}, "spec": spec | place})


async def warnings(story: Story) -> list[str]:
    return sorted(await failures(story, "InvalidAnnotation"))


def test_devices_that_are_not_published_are_reported() -> None:
    async def story(story: Story) -> None:
        await publish(story, "own", "gpu-0", "gpu-1", nodeName="n")
        await publish(story, "shared", "switch", allNodes=True)
        await publish(story, "other", "gpu-7", nodeName="other")
        await annotate(story, driver_faults=f"{DRIVER} unhealthy=gpu-0,switch unknown=gpu-1")
        await asyncio.sleep(20)
        assert await warnings(story) == []
        await annotate(story, driver_faults=f"{DRIVER} unhealthy=gpu-00,gpu-7; * healthy=absent")
        await asyncio.sleep(20)
        begin = "annotation allot.dev/driver-faults: "
        assert await warnings(story) == [
            f"{begin}driver {DRIVER} does not publish a device 'gpu-00' for node n; did you mean gpu-0?",
            f"{begin}driver {DRIVER} does not publish a device 'gpu-7' for node n; did you mean gpu-1?",
            f"{begin}no driver publishes a device 'absent' for node n",
        ]

    on_a_node(story)


def test_devices_may_be_published_after_the_annotation() -> None:
    async def story(story: Story) -> None:
        await annotate(story, driver_faults=f"{DRIVER} unhealthy=gpu-0")
        await asyncio.sleep(1)
        await publish(story, "own", "gpu-0", nodeName="n")
        await asyncio.sleep(20)
        assert await warnings(story) == []

    on_a_node(story)


def test_a_restarted_kubelet_keeps_pods_running() -> None:
    async def story(story: Story) -> None:
        await add_claimed_pod(story)
        await asyncio.sleep(2)
        before = await story.pod("p")
        await annotate(story, kubelet_restart="1")
        await asyncio.sleep(2)
        after = await story.pod("p")
        assert before is not None
        assert after is not None
        assert after.get("status") == before.get("status")
        await story.client.delete(PODS, ObjectKey("default", "p"))
        await asyncio.sleep(2)
        assert await story.phase("p") == "gone"

    on_a_node(story)


@pytest.mark.parametrize(
    ("settings", "phase"),
    [
        pytest.param(KubeletSettings(), "Running", id="default"),
        pytest.param(KubeletSettings(unregistered_drivers=SIMULATE), "Running", id="simulate"),
        pytest.param(KubeletSettings(unregistered_drivers=HOLD), "Pending", id="hold"),
    ],
)
def test_pods_of_drivers_that_are_not_registered(settings: KubeletSettings, phase: str) -> None:
    async def story(story: Story) -> None:
        await add_claimed_pod(story)
        await asyncio.sleep(10)
        assert await story.phase("p") == phase

    on_a_node(story, settings)


@pytest.mark.parametrize("skipped", [["NodePrepareResources", "NodeUnprepareResources"], ["*"]])
def test_devices_without_node_operations_need_no_driver(skipped: list[str]) -> None:
    """The driver has no part on the node."""

    async def story(story: Story) -> None:
        await add_claimed_pod(story, skipNodeOperations=skipped)
        await asyncio.sleep(2)
        assert await story.phase("p") == "Running"
        await story.client.delete(PODS, ObjectKey("default", "p"))
        await asyncio.sleep(2)
        assert await story.phase("p") == "gone"

    gates = with_overrides({OPTIONAL_NODE_OPERATIONS: True, NODE_DECLARED_FEATURES: True})
    on_a_node(story, KubeletSettings(unregistered_drivers=HOLD), gates)


def test_metrics() -> None:
    async def told(story: Story) -> None:
        await story.add_node("n", SIMULATED)
        simulation = NodeSimulation(story.new_client())
        async with running(simulation.run()):
            await asyncio.sleep(1)
            await add_claimed_pod(story)
            await asyncio.sleep(2)
            text = generate_latest(simulation.metrics.registry).decode()
            assert f'dra_resource_claims_in_use{{driver_name="{DRIVER}"}} 1.0' in text
            assert 'dra_resource_claims_in_use{driver_name="<any>"} 1.0' in text
            assert (
                'dra_operations_duration_seconds_count{is_error="false",operation_name="PrepareResources"} 1.0'
                in text
            )
            await story.client.delete(PODS, ObjectKey("default", "p"))
            await asyncio.sleep(2)
            text = generate_latest(simulation.metrics.registry).decode()
            assert 'dra_resource_claims_in_use{driver_name="<any>"} 0.0' in text
            assert DRIVER not in text

    tell(told)
