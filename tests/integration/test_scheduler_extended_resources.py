"""Extended resources served by devices (KEP-5004): API server and scheduler in one process."""

from __future__ import annotations

from tests.integration.extended_resources_cluster import (
    CLAIMS,
    FINALIZER,
    GPU,
    IMPLICIT,
    Cluster,
    devices_of,
    mappings_of,
    run,
)


def test_a_claim_is_made_allocated_and_named_in_the_pod() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.add_class()
        await cluster.add_node("n1", 4)
        await cluster.add_pod("pod", {"cpu": "1", GPU: "2"})

        pod = await cluster.bound("pod")
        (claim,) = await cluster.claims()
        name = claim["metadata"]["name"]
        owner = claim["metadata"]["ownerReferences"][0]
        uid = pod["metadata"]["uid"]

        assert name.startswith("pod-extended-resources-")
        assert claim["metadata"]["annotations"] == {
            "resource.kubernetes.io/extended-resource-claim": "true"
        }
        assert claim["metadata"]["finalizers"] == [FINALIZER]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", uid, True)
        assert devices_of(claim) == {"container-0-request-1": 2}
        assert [one["uid"] for one in claim["status"]["reservedFor"]] == [uid]
        assert pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == name
        assert mappings_of(pod) == {("c0", GPU, "container-0-request-1")}
        assert cluster.claims_created == 1

    run(scenario)


def test_names_of_classes_serve_too_and_every_container_gets_its_own() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.add_class()
        await cluster.add_class("nic", None)
        await cluster.add_node("n1", 8)
        await cluster.add_devices("n1", 1, "nic")
        nic = "deviceclass.resource.kubernetes.io/nic"
        await cluster.add_pod("pod", {IMPLICIT: "1", GPU: "2"}, {GPU: "1"}, {nic: "1", "cpu": "1"})

        pod = await cluster.bound("pod")
        (claim,) = await cluster.claims()

        assert devices_of(claim) == {
            "container-0-request-0": 1,
            "container-0-request-1": 2,
            "container-1-request-0": 1,
            "container-2-request-1": 1,
        }
        assert mappings_of(pod) == {
            ("c0", IMPLICIT, "container-0-request-0"),
            ("c0", GPU, "container-0-request-1"),
            ("c1", GPU, "container-1-request-0"),
            ("c2", nic, "container-2-request-1"),
        }

    run(scenario)


def test_init_containers_use_what_containers_get_later() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.add_class()
        await cluster.add_node("n1", 4)
        inits = ({GPU: "3"}, {GPU: "1", "sidecar": "yes"})
        await cluster.add_pod("pod", {GPU: "1"}, init=inits)

        pod = await cluster.bound("pod")
        (claim,) = await cluster.claims()

        assert devices_of(claim) == {
            "container-0-request-0": 1,
            "container-1-request-0": 1,
            "container-2-request-0": 1,
        }
        assert mappings_of(pod) == {
            ("i0", GPU, "container-0-request-0"),
            ("i0", GPU, "container-1-request-0"),
            ("i0", GPU, "container-2-request-0"),
            ("i1", GPU, "container-1-request-0"),
            ("c0", GPU, "container-2-request-0"),
        }

    run(scenario)


def test_a_device_plugin_serves_the_resource_where_there_is_one() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.add_class()
        await cluster.add_node("plugin", 4, **{GPU: "1"})
        await cluster.add_pod("first", {GPU: "1"})
        pod = await cluster.bound("first")

        assert "extendedResourceClaimStatus" not in pod["status"]
        assert await cluster.claims() == []

        await cluster.add_pod("second", {GPU: "1"})
        await cluster.refused("second", "Insufficient example.com/gpu")

        await cluster.add_node("devices", 1)
        pod = await cluster.bound("second")
        assert pod["spec"]["nodeName"] == "devices"
        assert mappings_of(pod) == {("c0", GPU, "container-0-request-0")}

    run(scenario)


def test_devices_serve_after_the_device_plugin_is_gone() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.add_class()
        await cluster.add_node("n1", 1, **{GPU: "1"})
        await cluster.add_pod("first", {GPU: "1"})
        await cluster.bound("first")
        await cluster.add_pod("second", {GPU: "1"})
        await cluster.refused("second", "Insufficient")

        await cluster.set_allocatable("n1", {GPU: "0"})

        assert mappings_of(await cluster.bound("second"))

    run(scenario)


def test_pods_wait_for_devices_and_get_those_of_others_that_go() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.add_class()
        await cluster.add_node("n1", 2)
        for number in range(4):
            await cluster.add_pod(f"pod-{number}", {GPU: "1"})
        await cluster.bound("pod-0")
        await cluster.bound("pod-1")
        message = await cluster.refused("pod-2", "cannot allocate all claims")
        assert message.startswith("0/1 nodes are available: 1 cannot allocate all claims.")
        await cluster.refused("pod-3", "cannot allocate all claims")
        assert len(await cluster.claims()) == 2

        await cluster.remove_pod("pod-0")
        await cluster.remove_pod("pod-1")
        await cluster.bound("pod-2")
        await cluster.bound("pod-3")

        results = [
            result["device"]
            for claim in await cluster.claims()
            for result in claim["status"]["allocation"]["devices"]["results"]
        ]
        assert sorted(results) == ["gpu-0", "gpu-1"]

    run(scenario)


def test_a_pod_waits_until_there_is_a_class() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.add_node("n1", 1)
        await cluster.add_pod("pod", {GPU: "1"})
        await cluster.refused("pod", "Insufficient example.com/gpu")

        await cluster.add_class()

        await cluster.bound("pod")

    run(scenario)


def test_a_request_for_nothing_makes_no_claim() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.add_class()
        await cluster.add_node("n1", 1)
        await cluster.add_pod("pod", {GPU: "0"})

        await cluster.bound("pod")

        assert await cluster.claims() == []

    run(scenario)


def test_claims_and_extended_resources_are_solved_together() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.add_class()
        await cluster.add_node("small", 1)
        await cluster.add_node("large", 2)
        request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
        await cluster.server.post(
            CLAIMS, {"metadata": {"name": "own"}, "spec": {"devices": {"requests": [request]}}}
        )
        own = [{"name": "own", "resourceClaimName": "own"}]
        await cluster.add_pod("pod", {GPU: "1"}, resourceClaims=own)

        pod = await cluster.bound("pod")

        assert pod["spec"]["nodeName"] == "large"
        devices = [
            result["device"]
            for claim in await cluster.claims()
            for result in claim["status"]["allocation"]["devices"]["results"]
        ]
        assert sorted(devices) == ["gpu-0", "gpu-1"]

    run(scenario)


def test_pods_that_look_alike_to_nodes_may_need_different_devices() -> None:
    """What one pod was told about a node must not be taken for the other's answer."""

    async def scenario(cluster: Cluster) -> None:
        await cluster.add_class()
        await cluster.add_node("n1", 1)
        await cluster.add_pod("together", {GPU: "1", IMPLICIT: "1"})
        await cluster.refused("together", "cannot allocate all claims")

        await cluster.add_pod("in-turn", {IMPLICIT: "1"}, init=({GPU: "1"},))
        await cluster.bound("in-turn")

        await cluster.remove_pod("in-turn")
        await cluster.add_pod("in-turn-again", {IMPLICIT: "1"}, init=({GPU: "1"},))
        await cluster.bound("in-turn-again")
        assert "nodeName" not in (await cluster.pod("together"))["spec"]

    run(scenario)


def test_nodes_are_not_asked_again_for_pods_that_want_the_same() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.add_class()
        for number in range(10):
            await cluster.add_node(f"n{number}", 4)
        for number in range(20):
            await cluster.add_pod(f"pod-{number}", {GPU: "1"})
        for number in range(20):
            await cluster.bound(f"pod-{number}")

        # Every node once, and for every pod the node of the pod before and its own.
        assert cluster.allocations <= 10 + 20 * 4

    run(scenario)
