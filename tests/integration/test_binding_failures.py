"""What happens to a pod whose device or node fails while it waits (KEP-5007), in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

from allot.features import DEFAULTS, FeatureGates
from allot.rules import AVOID_FAILED_DEVICES
from allot.testing.cluster import ClusterSettings, VirtualTimeCluster
from allot.testing.virtual_time import run_in_virtual_time
from tests.integration.test_binding_conditions import PODS, Scene, a_binding_scene, device_with


async def notes(scene: Scene, reason: str) -> list[str]:
    listed = await scene.server.get("/api/v1/namespaces/default/events")
    return [event["message"] for event in listed["items"] if event["reason"] == reason]


async def fail(scene: Scene, claim: str) -> str | None:
    """Let the device of a claim fail; which one it was. The claim is cleared."""
    await scene.until(lambda: scene.device_of(claim))
    device = await scene.device_of(claim)
    await scene.set_condition(claim, "Broken")

    async def has_another() -> bool:
        return await scene.device_of(claim) != device

    try:
        await scene.until(has_another, 5)
    except TimeoutError:
        return f"{device} again"
    return device


def test_a_device_that_failed_is_not_tried_again_while_another_is_free() -> None:
    async def run() -> None:
        devices = [device_with("fpga-0", "Programmed"), device_with("fpga-1", "Programmed")]
        async with a_binding_scene({"n1": devices}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            assert await fail(scene, "c") == "fpga-0"
            await scene.until(lambda: scene.device_of("c"))
            assert await scene.device_of("c") == "fpga-1"
            await scene.set_condition("c", "Programmed")
            await scene.until(lambda: scene.node_of("p"))

    run_in_virtual_time(run())


async def seconds_until_another_try(scene: Scene) -> float:
    assert await fail(scene, "c") == "fpga-0"
    loop = asyncio.get_running_loop()
    began = loop.time()
    await scene.until(lambda: scene.device_of("c"), 700)
    return loop.time() - began


def test_the_only_device_is_tried_again_after_a_while() -> None:
    async def run() -> None:
        async with a_binding_scene({"n1": [device_with("fpga-0", "Programmed")]}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            first = await seconds_until_another_try(scene)
            second = await seconds_until_another_try(scene)
            assert 25 < first < 35
            assert 55 < second < 65
            await scene.set_condition("c", "Programmed")
            await scene.until(lambda: scene.node_of("p"))

    run_in_virtual_time(run())


def test_another_pod_may_have_the_device() -> None:
    async def run() -> None:
        async with a_binding_scene({"n1": [device_with("fpga-0", "Programmed")]}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            assert await fail(scene, "c") == "fpga-0"
            await scene.claim("d")
            await scene.pod("q", "d")
            await scene.until(lambda: scene.device_of("d"), 5)

    run_in_virtual_time(run())


def test_with_the_rules_of_kubernetes_the_same_device_is_tried_at_once() -> None:
    async def run() -> None:
        devices = [device_with("fpga-0", "Programmed"), device_with("fpga-1", "Programmed")]
        async with a_binding_scene({"n1": devices}) as scene:
            await scene.stop()
            scene.start(DEFAULTS.switched({AVOID_FAILED_DEVICES: False}))
            await scene.claim("c")
            await scene.pod("p", "c")
            assert await fail(scene, "c") == "fpga-0"
            await scene.until(lambda: scene.device_of("c"))
            assert await scene.device_of("c") == "fpga-0"
            pod = await scene.server.get(f"{PODS}/p")
            assert len(await notes(scene, "FailedScheduling")) == 1, pod

    run_in_virtual_time(run())


# --- room on the node ---


async def add_pod(scene: Scene, name: str, cpu: str, *claims: str) -> None:
    entries = [{"name": f"c{index}", "resourceClaimName": c} for index, c in enumerate(claims)]
    container: dict[str, Any] = {"name": "m", "image": "i"}
    container["resources"] = {"requests": {"cpu": cpu}}
    spec = {"containers": [container], "resourceClaims": entries}
    await scene.server.post(PODS, {"metadata": {"name": name}, "spec": spec})


async def who_gets_the_room(gates: FeatureGates) -> tuple[str | None, str | None]:
    """The device of p fails and q wants the room that p had. The next device of p, and the node of q."""
    devices = [device_with("fpga-0", "Programmed"), device_with("fpga-1", "Programmed")]
    async with a_binding_scene({"n1": devices}) as scene:
        await scene.stop()
        scene.start(gates)
        await scene.claim("c")
        await add_pod(scene, "p", "6", "c")
        await scene.until(lambda: scene.device_of("c"))
        await add_pod(scene, "q", "6")
        await asyncio.sleep(1)
        await scene.set_condition("c", "Broken")
        await asyncio.sleep(10)
        return await scene.device_of("c"), await scene.node_of("q")


def test_the_room_on_the_node_is_kept() -> None:
    assert run_in_virtual_time(who_gets_the_room(DEFAULTS)) == ("fpga-1", None)


def test_with_the_rules_of_kubernetes_another_pod_takes_the_room() -> None:
    gates = DEFAULTS.switched({AVOID_FAILED_DEVICES: False})

    assert run_in_virtual_time(who_gets_the_room(gates)) == (None, "n1")


def test_the_room_is_free_when_the_pod_cannot_use_it_any_more() -> None:
    async def run() -> None:
        async with a_binding_scene({"n1": [device_with("fpga-0", "Programmed")]}) as scene:
            await scene.claim("c")
            await add_pod(scene, "p", "6", "c")
            await scene.until(lambda: scene.device_of("c"))
            await add_pod(scene, "q", "6")
            await asyncio.sleep(1)
            await scene.set_condition("c", "Broken")
            await scene.until(lambda: scene.node_of("q"), 20)

    run_in_virtual_time(run())


# --- the node ---


def test_a_pod_whose_node_is_deleted_goes_to_another() -> None:
    async def run() -> None:
        conditioned = [device_with("fpga-0", "Programmed")]
        async with a_binding_scene({"n1": conditioned, "n2": conditioned}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            await scene.until(lambda: scene.device_of("c"))
            pod = await scene.server.get(f"{PODS}/p")
            node = pod["status"]["nominatedNodeName"]
            other = "n2" if node == "n1" else "n1"
            await scene.server.ask("DELETE", f"/api/v1/nodes/{node}")

            async def is_on_the_other() -> bool:
                found = await scene.server.get("/apis/resource.k8s.io/v1/resourceclaims")
                (claim,) = found["items"]
                allocation = (claim.get("status") or {}).get("allocation")
                if allocation is None:
                    return False
                return bool(allocation["devices"]["results"][0]["pool"] == other)

            await scene.until(is_on_the_other, 30)
            assert await scene.node_of("p") is None
            failures = await notes(scene, "FailedScheduling")
            assert any(f"node {node} was deleted while the pod waited" in note for note in failures)
            await scene.set_condition("c", "Programmed")
            await scene.until(lambda: scene.node_of("p"))
            assert await scene.node_of("p") == other

    run_in_virtual_time(run())


def test_a_node_that_comes_back_at_once_is_another_node() -> None:
    async def run() -> None:
        async with a_binding_scene({"n1": [device_with("fpga-0", "Programmed")]}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            await scene.until(lambda: scene.device_of("c"))
            node = await scene.server.get("/api/v1/nodes/n1")
            await scene.server.ask("DELETE", "/api/v1/nodes/n1")
            await scene.server.post("/api/v1/nodes", {"metadata": {"name": "n1"}})
            created = await scene.server.get("/api/v1/nodes/n1")
            created["status"] = node["status"]
            await scene.server.ask("PUT", "/api/v1/nodes/n1/status", created)

            async def was_told() -> bool:
                failures = await notes(scene, "FailedScheduling")
                return any("node n1 was deleted" in note for note in failures)

            await scene.until(was_told, 30)
            await scene.until(lambda: scene.device_of("c"))
            await scene.set_condition("c", "Programmed")
            await scene.until(lambda: scene.node_of("p"))

    run_in_virtual_time(run())


def test_the_timeout_of_a_cluster_in_a_test_can_be_set() -> None:
    settings = ClusterSettings(has_scheduler=True, binding_timeout="30s")
    device = device_with("fpga-0", "Programmed") | {"bindsToNode": False}
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "fpga.example.com", "nodeName": "n1", "pool": pool, "devices": [device]}
    request = {"name": "r", "exactly": {"deviceClassName": "fpga"}}
    dra = {"apiVersion": "resource.k8s.io/v1"}
    with VirtualTimeCluster(settings) as cluster:
        cluster.apply(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
            dra | {"kind": "DeviceClass", "metadata": {"name": "fpga"}, "spec": {}},
            dra | {"kind": "ResourceSlice", "metadata": {"name": "n1"}, "spec": spec},
            dra
            | {
                "kind": "ResourceClaim",
                "metadata": {"name": "c", "namespace": "default"},
                "spec": {"devices": {"requests": [request]}},
            },
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "namespace": "default"},
                "spec": {
                    "containers": [{"name": "m", "image": "i"}],
                    "resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
                },
            },
        )

        def has_timed_out(pod: dict[str, Any] | None) -> bool:
            conditions = (pod or {}).get("status", {}).get("conditions") or ()
            return any("device binding timeout" in each.get("message", "") for each in conditions)

        cluster.wait_for("Pod", "p", has_timed_out, seconds=60)
