"""Extended resources served by devices when writes fail, answers get lost, and schedulers die or meet."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import pytest

from tests.integration.extended_resources_cluster import (
    CLAIMS,
    FINALIZER,
    GPU,
    PODS,
    Cluster,
    mappings_of,
    message_of,
    nothing,
    run,
)

DEVICES = 6
PODS_WAITING = 8


def test_the_claim_goes_when_binding_fails() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.transport.refuse = lambda _, path: path.endswith("/binding")
        await cluster.add_class()
        await cluster.add_node("n1", 1)
        await cluster.add_pod("pod", {GPU: "1"})
        await cluster.refused("pod", "no")

        cluster.transport.refuse = nothing
        pod = await cluster.bound("pod")
        (claim,) = await cluster.until_claims(1)

        status = pod["status"]["extendedResourceClaimStatus"]
        assert status["resourceClaimName"] == claim["metadata"]["name"]
        assert [one["uid"] for one in claim["status"]["reservedFor"]] == [pod["metadata"]["uid"]]

    run(scenario)


def test_a_claim_that_fails_half_way_goes_and_its_devices_serve_others() -> None:
    async def scenario(cluster: Cluster) -> None:
        def refuse(method: str, path: str) -> bool:
            return method == "PATCH" and path.endswith("/first/status")

        cluster.transport.refuse = refuse
        await cluster.add_class()
        await cluster.add_node("n1", 1)
        await cluster.add_pod("first", {GPU: "1"})
        while not cluster.claims_created:
            await asyncio.sleep(0.01)
        options = {"gracePeriodSeconds": 0}
        await cluster.server.ask("DELETE", f"{PODS}/first", options)
        await cluster.until_claims(0)
        await cluster.add_pod("second", {GPU: "1"})

        assert mappings_of(await cluster.bound("second"))

    run(scenario)


def test_what_an_earlier_scheduler_left_over_is_removed_first() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.add_class()
        await cluster.add_pod("pod", {GPU: "1"})
        pod = await cluster.pod("pod")
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "pod",
            "uid": pod["metadata"]["uid"],
            "controller": True,
        }
        left_over = await cluster.server.post(
            CLAIMS,
            {
                "metadata": {
                    "name": "pod-extended-resources-abcde",
                    "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
                    "ownerReferences": [owner],
                    "finalizers": [FINALIZER],
                },
                "spec": {
                    "devices": {
                        "requests": [
                            {"name": "container-0-request-0", "exactly": {"deviceClassName": "gpu"}}
                        ]
                    }
                },
            },
        )
        await cluster.stop()
        cluster.start_another(timedelta(minutes=1))
        seen: list[str] = []
        async with cluster.server.watch(PODS) as stream:
            await cluster.add_node("n1", 1)
            while not (pod := (await stream.next() or {})["object"])["spec"].get("nodeName"):
                seen.append(message_of(pod))

        assert any(
            "1 cannot schedule extended resource claim. " in text
            and "deletion of ResourceClaim completed" in text
            for text in seen
        ), seen
        (claim,) = await cluster.claims()
        assert claim["metadata"]["uid"] != left_over["metadata"]["uid"]

    run(scenario)


def devices_held_twice(history: Iterable[Mapping[str, Any]]) -> list[set[str]]:
    """Devices that two claims had at the same time, event by event."""
    held: dict[str, set[str]] = {}
    twice = []
    for event in history:
        claim = event["object"]
        held.pop(claim["metadata"]["uid"], None)
        allocation = claim.get("status", {}).get("allocation")
        if event["type"] != "DELETED" and allocation:
            results = allocation["devices"]["results"]
            devices = {f"{one['pool']}/{one['device']}" for one in results}
            twice += [devices & other for other in held.values() if devices & other]
            held[claim["metadata"]["uid"]] = devices
    return twice


async def check_all_is_well(cluster: Cluster, bound: int) -> None:
    """So many pods are bound, each with a claim for devices of its node, and there are no other claims."""
    pods = [pod for pod in (await cluster.server.get(PODS))["items"] if "nodeName" in pod["spec"]]
    assert len(pods) == bound
    claims = {claim["metadata"]["name"]: claim for claim in await cluster.until_claims(bound)}
    for pod in pods:
        claim = claims.pop(pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"])
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        assert result["pool"] == pod["spec"]["nodeName"]
        assert [one["uid"] for one in claim["status"]["reservedFor"]] == [pod["metadata"]["uid"]]


async def fill(cluster: Cluster) -> None:
    await cluster.add_class()
    for name in ("n1", "n2"):
        await cluster.add_node(name, DEVICES // 2)
    for number in range(PODS_WAITING):
        await cluster.add_pod(f"pod-{number}", {GPU: "1"})


@pytest.mark.parametrize("done", [False, True], ids=["not-done", "done-but-not-answered"])
@pytest.mark.parametrize("seed", range(3))
def test_writes_fail_at_random(seed: int, done: bool) -> None:
    async def scenario(cluster: Cluster) -> None:
        chance = random.Random(seed)  # noqa: S311 - to be repeated
        writes = 0

        def refuse(method: str, path: str) -> bool:
            nonlocal writes
            is_ours = "claims" in path or path.endswith(("status", "binding"))
            if method == "GET" or not is_ours:
                return False
            writes += 1
            return writes < 120 and chance.random() < 0.3

        cluster.transport.refuse = refuse
        cluster.transport.is_done = done
        async with cluster.history() as history:
            await fill(cluster)
            await cluster.until_bound(DEVICES)
            await check_all_is_well(cluster, DEVICES)

        assert history
        assert devices_held_twice(history) == []
        assert cluster.claims_created > DEVICES

    run(scenario)


@pytest.mark.parametrize("writes_before", range(1, 17, 3))
def test_a_scheduler_dies_and_another_takes_over(writes_before: int) -> None:
    async def scenario(cluster: Cluster) -> None:
        writes = 0

        def die(method: str, path: str) -> bool:
            nonlocal writes
            writes += method != "GET" and ("claims" in path or path.endswith("binding"))
            return writes > writes_before

        cluster.transport.refuse = die
        async with cluster.history() as history:
            await fill(cluster)
            while writes <= writes_before:
                await asyncio.sleep(0.001)
            await cluster.stop()
            cluster.start_another(timedelta(minutes=1))
            await cluster.until_bound(DEVICES)
            await check_all_is_well(cluster, DEVICES)

        assert devices_held_twice(history) == []

    run(scenario)


def test_a_claim_of_another_scheduler_is_not_taken_for_left_over() -> None:
    async def scenario(cluster: Cluster) -> None:
        is_let_through = asyncio.Event()
        cluster.transport.before_binding = is_let_through.wait
        await cluster.add_class()
        await cluster.add_node("n1", 2)
        await cluster.add_pod("pod", {GPU: "1"})
        while not cluster.claims_created:
            await asyncio.sleep(0.001)
        cluster.start_another()
        await cluster.refused("pod", "got created elsewhere in the meantime")
        is_let_through.set()

        await cluster.until_bound(1)
        await check_all_is_well(cluster, 1)

    run(scenario)


def test_two_schedulers_want_the_same_pods() -> None:
    """One of them tells a pod its claim; the other gives up and takes its own claim back."""

    async def scenario(cluster: Cluster) -> None:
        cluster.start_another()
        await fill(cluster)
        await cluster.until_bound(DEVICES)
        await check_all_is_well(cluster, DEVICES)

    run(scenario)
