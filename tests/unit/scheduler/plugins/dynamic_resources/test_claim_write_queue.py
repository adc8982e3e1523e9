"""Pods that share a claim write it together. Every request takes a few turns of the event loop here."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.resource import DELETE_PROTECTION
from allot.client.client import Client
from allot.client.transport import ClusterTransport
from allot.scheduler.plugins.dynamic_resources.claim_write_queue import (
    ClaimChangedError,
    ClaimWriteQueue,
)
from allot.scheduler.plugins.dynamic_resources.claim_writes import ClaimWriter
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import an_allocation
from tests.unit.scheduler.plugins.dynamic_resources.server import (
    Disturbed,
    Scene,
    a_claim_write_scene,
)
from tests.unit.scheduler.state.objects import a_pod_info

GPU_0 = an_allocation("gpu-0", node="node-1")
PODS = [a_pod_info(f"pod-{number}") for number in range(300)]


def played(story: Callable[[Scene, ClaimWriter], Coroutine[Any, Any, None]]) -> None:
    async def slow() -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    async def main() -> None:
        async with a_claim_write_scene() as scene:
            scene.way.before = dict.fromkeys(range(1, 10_000), slow)
            await story(scene, ClaimWriter(scene.client, lambda _: None))

    asyncio.run(main())


async def reserve_all(writer: ClaimWriter, claim: ResourceClaim, pods: list[PodInfo]) -> list[Any]:
    return await asyncio.gather(
        *(writer.allocate_and_reserve(claim, pod, None, None) for pod in pods),
        return_exceptions=True,
    )


def consumers(claim: ResourceClaim) -> list[str]:
    return [consumer.name for consumer in claim.status.reserved_for]


def test_256_pods_cost_a_few_writes_and_no_conflict() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        await scene.claim()
        claim = await scene.allocate(GPU_0)

        results = await reserve_all(writer, claim, PODS[:256])

        stored = await scene.stored()
        assert consumers(stored) == [pod.name for pod in PODS[:256]]
        assert all(isinstance(result, ResourceClaim) for result in results)
        assert Counter(scene.way.asked)["PUT status"] <= 2
        assert "GET claim" not in scene.way.asked

    played(story)


def test_reservations_above_the_limit_of_reserved_for_fail() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        await scene.claim()
        claim = await scene.allocate(GPU_0)

        results = await reserve_all(writer, claim, PODS[:258])

        refused = [result for result in results if isinstance(result, ClaimChangedError)]
        text = (
            "add reservation to claim default/claim: "
            'ResourceClaim.resource.k8s.io "claim" is invalid: '
            "status.reservedFor: Too many: 257: must have at most 256 items"
        )
        assert list(map(str, refused)) == [text, text]
        assert len(consumers(await scene.stored())) == 256

    played(story)


def test_an_allocation_and_reservations_on_it_are_written_in_order() -> None:
    """The finalizer, then the status; the first pod allocates, the second counts on that."""

    async def story(scene: Scene, writer: ClaimWriter) -> None:
        claim = await scene.claim()
        allocated = replace(claim, status=replace(claim.status, allocation=GPU_0))

        await asyncio.gather(
            writer.allocate_and_reserve(claim, PODS[0], GPU_0, None),
            writer.allocate_and_reserve(allocated, PODS[1], None, None),
        )

        stored = await scene.stored()
        assert scene.way.asked == ["PUT claim", "PUT status", "PUT status"]
        assert stored.metadata.finalizers == (DELETE_PROTECTION,)
        assert consumers(stored) == ["pod-0", "pod-1"]

    played(story)


def test_a_server_of_the_same_cluster_gets_finalizer_and_status_at_once() -> None:
    class WayInCluster(Disturbed, ClusterTransport):
        pass

    async def story(scene: Scene, _: ClaimWriter) -> None:
        claim = await scene.claim()
        way = WayInCluster(scene.way)
        writer = ClaimWriter(Client(way), lambda _: None)

        await writer.allocate_and_reserve(claim, PODS[0], GPU_0, None)

        stored = await scene.stored()
        assert way.asked == ["PUT claim"]
        assert stored.metadata.finalizers == (DELETE_PROTECTION,)
        assert consumers(stored) == ["pod-0"]

    played(story)


def test_others_that_write_the_claim_cost_one_retry_for_all() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        await scene.claim()
        claim = await scene.allocate(GPU_0)
        scene.way.before[2] = scene.touch

        await reserve_all(writer, claim, PODS[:50])

        assert consumers(await scene.stored()) == [pod.name for pod in PODS[:50]]
        assert scene.way.asked == ["PUT status", "PUT status", "GET claim", "PUT status"]

    played(story)


def test_reservations_are_taken_back_together() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        pods = [await scene.pod(f"pod-{number}") for number in range(30)]
        await scene.claim()
        claim = await scene.allocate(GPU_0, *pods)

        await asyncio.gather(*(writer.drop_reservation(claim, pod) for pod in pods))

        assert consumers(await scene.stored()) == []
        assert (await scene.stored()).status.allocation == GPU_0
        assert Counter(scene.way.asked)["PUT status"] <= 3

    played(story)


def test_a_change_that_the_server_refuses_does_not_cost_the_others_theirs() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        await scene.claim()
        claim = await scene.allocate(GPU_0)
        lanes = ClaimWriteQueue(scene.client, lambda _: None)

        def reserved_for(pod: PodInfo, uid: str) -> Callable[[ResourceClaim], ResourceClaim]:
            def change(current: ResourceClaim) -> ResourceClaim:
                one = replace(consumer, name=pod.name, uid=uid)
                known = current.status.reserved_for
                return replace(current, status=replace(current.status, reserved_for=(*known, one)))

            return change

        (consumer,) = (await scene.allocate(GPU_0, PODS[9])).status.reserved_for
        claim = await scene.allocate(GPU_0)
        changes = [
            reserved_for(PODS[0], "a"),
            reserved_for(PODS[1], ""),
            reserved_for(PODS[2], "c"),
        ]
        results = await asyncio.gather(
            *(lanes.write(claim, change) for change in changes), return_exceptions=True
        )

        assert [isinstance(result, Exception) for result in results] == [False, True, False]
        assert consumers(await scene.stored()) == ["pod-0", "pod-2"]
        assert not len(lanes), "what is written is forgotten"

    played(story)


@pytest.mark.parametrize("number", [0, 3], ids=["who-writes", "who-waits"])
@pytest.mark.parametrize("turns", range(1, 7))
def test_a_pod_that_goes_away_meanwhile_does_not_take_others_along(number: int, turns: int) -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        await scene.claim()
        claim = await scene.allocate(GPU_0)
        tasks = [
            asyncio.create_task(writer.allocate_and_reserve(claim, pod, None, None))
            for pod in PODS[:5]
        ]
        for _ in range(turns):
            await asyncio.sleep(0)
        tasks[number].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

        names = set(consumers(await scene.stored()))
        assert names >= {pod.name for pod in PODS[:5]} - {PODS[number].name}
        assert [task.cancelled() for task in tasks].count(True) <= 1

    played(story)
