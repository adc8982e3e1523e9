"""Pods that share a claim: which wait, how often the claim is written, and how often pods are woken for it."""

from __future__ import annotations

import asyncio
from typing import Any

from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.client.resources import EVENTS
from allot.client.transport import Response
from allot.scheduler.plugins.dynamic_resources.plugin import DynamicResources
from allot.testing.servers import TOKEN, LocalServer
from tests.integration.test_scheduler import Cluster, played, scheduling, until

PODS = 256


class Slow(InProcessTransport):
    """Every request takes some turns of the event loop, so that writes overlap."""

    turns = 3

    def __init__(self, server: LocalServer) -> None:
        super().__init__(server.server.app, TOKEN)
        self.claim_writes = 0
        self.conflicts = 0

    async def request(self, method: str, path: str, *rest: Any, **more: Any) -> Response:
        for _ in range(self.turns):
            await asyncio.sleep(0)
        answer = await super().request(method, path, *rest, **more)
        if method != "GET" and "resourceclaims" in path:
            self.claim_writes += 1
            self.conflicts += answer.code == 409
        return answer


async def failures(cluster: Cluster) -> list[str]:
    events = (await cluster.client.list(EVENTS)).items
    return [each.get("note") for each in events if each.get("reason") == "FailedScheduling"]


def test_256_pods_get_their_claim_without_a_conflict_or_a_failure() -> None:
    async def story(cluster: Cluster, server: LocalServer) -> None:
        await cluster.add_class()
        await cluster.add_nodes(2, 1)
        await cluster.add_claim("shared")
        for number in range(PODS):
            await cluster.add_pod(f"p{number}", "shared")
        way = Slow(server)
        async with scheduling(Client(way)) as process:
            await cluster.until_bound(PODS)
            checks = process.queue.checks
        attempts = process.metrics.registry.get_sample_value(
            "scheduler_schedule_attempts_total",
            {"result": "unschedulable", "profile": "default-scheduler"},
        )
        plugin = process.profiles["default-scheduler"].plugin("DynamicResources")

        assert await failures(cluster) == []
        assert way.conflicts == 0
        assert way.claim_writes <= 20
        assert checks < 2 * PODS, "the allocation wakes each of them once"
        assert (attempts or 0) < PODS, "and each waits once at most"
        assert isinstance(plugin, DynamicResources)
        assert plugin.allocations <= 4
        await cluster.check()

    played(story)


def test_others_that_write_the_claim_meanwhile_do_not_fail_a_pod() -> None:
    async def story(cluster: Cluster, server: LocalServer) -> None:
        await cluster.add_class()
        await cluster.add_nodes(2, 1)
        await cluster.add_claim("shared")
        for number in range(60):
            await cluster.add_pod(f"p{number}", "shared")
        is_over = False

        async def touch() -> None:
            number = 0
            while not is_over:
                number += 1
                labels = {"metadata": {"labels": {"touched": str(number)}}}
                await cluster._patch(
                    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/shared", labels
                )
                for _ in range(10):
                    await asyncio.sleep(0)

        touching = asyncio.create_task(touch())
        way = Slow(server)
        async with scheduling(Client(way)):
            await cluster.until_bound(60)
        is_over = True
        await touching

        assert await failures(cluster) == []
        await cluster.check()

    played(story)


def test_those_for_whom_there_is_no_place_get_one_when_others_go() -> None:
    async def story(cluster: Cluster, server: LocalServer) -> None:
        await cluster.add_class()
        await cluster.add_nodes(2, 1)
        await cluster.add_claim("shared")
        for number in range(PODS + 3):
            await cluster.add_pod(f"p{number}", "shared")
        async with scheduling(Client(Slow(server))):
            await cluster.until_bound(PODS)
            waiting = [pod.metadata.name for pod in await cluster.pods() if not pod.node_name]

            async def are_told() -> bool:
                told = [(await cluster.condition(name))[2] for name in waiting]
                return all("claim default/shared" in text and "256" in text for text in told)

            await until(are_told)
            for pod in (await cluster.bound())[:3]:
                await cluster.remove_pod(pod.metadata.name)
            await cluster.until_bound(PODS)
        await cluster.check()

    played(story)
