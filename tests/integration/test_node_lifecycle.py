"""Nodes that fall silent, and what happens to their pods."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from allot.controllers.node_lifecycle import NodeLifecycleController, NodeLifecycleSettings
from allot.controllers.pod_garbage_collection import PodGarbageCollector
from allot.controllers.pod_garbage_collection import (
    PodGarbageCollectorSettings as CollectorSettings,
)
from allot.controllers.taint_eviction import TaintEvictionController
from tests.integration.stage import NODES, PODS, Stage, play

UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"


async def taints(stage: Stage, node: str) -> set[tuple[str, str]]:
    found = await stage.server.get(f"{NODES}/{node}")
    entries: list[dict[str, Any]] = found.get("spec", {}).get("taints") or []
    assert all(entry.get("timeAdded") for entry in entries if entry["effect"] == "NoExecute")
    return {(entry["key"], entry["effect"]) for entry in entries}


async def keep_alive(stage: Stage, *nodes: str) -> None:
    while True:
        for node in nodes:
            await stage.renew(node)
        await asyncio.sleep(10)


async def a_running_pod(stage: Stage, name: str, node: str, **spec: Any) -> None:
    await stage.pod(name, node, **spec)
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"status": {"phase": "Running", "conditions": conditions}}
    await stage.patch(f"{PODS}/{name}/status", status)


def test_a_node_that_falls_silent_loses_its_pods_and_comes_back() -> None:
    async def story(stage: Stage) -> None:
        for node in ("dies", "lives"):
            await stage.node(node)
            await stage.renew(node)
        for name, node in (("lost", "dies"), ("kept", "lives")):
            await a_running_pod(stage, name, node)
        await stage.start()
        lives = asyncio.create_task(keep_alive(stage, "lives"))
        dies = asyncio.create_task(keep_alive(stage, "dies"))
        await asyncio.sleep(120)
        assert await taints(stage, "dies") == set()
        dies.cancel()
        await asyncio.sleep(39)
        assert (await stage.condition(f"{NODES}/dies", "Ready"))["status"] == "True"
        await asyncio.sleep(13)
        ready = await stage.condition(f"{NODES}/dies", "Ready")
        assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
        memory = await stage.condition(f"{NODES}/dies", "MemoryPressure")
        assert (memory["status"], memory["reason"]) == ("Unknown", "NodeStatusNeverUpdated")
        assert await taints(stage, "dies") == {
            (UNREACHABLE, "NoSchedule"),
            (UNREACHABLE, "NoExecute"),
        }
        assert (await stage.condition(f"{PODS}/lost", "Ready"))["status"] == "False"
        assert await stage.notes("NodeNotReady") == [
            "Node dies status is now: NodeNotReady",
            "Node is not ready",
        ]
        # Admission lets pods stay for five minutes.
        await asyncio.sleep(280)
        assert not await stage.pod_leaves("lost")
        await asyncio.sleep(30)
        assert await stage.pod_leaves("lost")
        why = await stage.condition(f"{PODS}/lost", "DisruptionTarget")
        assert (why["status"], why["reason"]) == ("True", "DeletionByTaintManager")
        assert await stage.notes("TaintManagerEviction") == [
            "Marking for deletion Pod default/lost"
        ]
        await stage.report("dies")
        await stage.until(lambda: has_taints(stage, "dies", set()))
        assert not await stage.pod_leaves("kept")
        assert await taints(stage, "lives") == set()
        lives.cancel()

    play(story, NodeLifecycleController, TaintEvictionController)


def test_a_pod_stays_if_its_node_comes_back_in_time() -> None:
    async def story(stage: Stage) -> None:
        await stage.node("healthy")
        await stage.node("ill")
        await a_running_pod(stage, "pod", "ill")
        await stage.start()
        await stage.report("ill", "False")
        await stage.until(
            lambda: has_taints(stage, "ill", {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")})
        )
        await asyncio.sleep(20)
        await stage.report("ill", "True")
        await stage.until(lambda: has_taints(stage, "ill", set()))
        await stage.until(lambda: stage.notes("TaintManagerEviction"))
        assert await stage.notes("TaintManagerEviction") == [
            "Cancelling deletion of Pod default/pod"
        ]
        await asyncio.sleep(400)
        assert not await stage.pod_leaves("pod")

    lenient = partial(
        NodeLifecycleController, settings=NodeLifecycleSettings(monitors_without_lease=False)
    )
    play(story, lenient, TaintEvictionController)


def test_if_all_nodes_are_lost_it_may_be_us() -> None:
    async def story(stage: Stage) -> None:
        await stage.node("n1")
        await stage.node("n2")
        await stage.start()
        await asyncio.sleep(100)
        for node in ("n1", "n2"):
            assert await taints(stage, node) == {(UNREACHABLE, "NoSchedule")}
        await stage.report("n1")
        await stage.until(lambda: has_taints(stage, "n1", set()))
        await stage.until(
            lambda: has_taints(
                stage, "n2", {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
            ),
            15,
        )

    play(story, NodeLifecycleController)


def test_grace_periods_start_again_after_a_full_disruption() -> None:
    async def story(stage: Stage) -> None:
        await stage.node("n1")
        await stage.start()
        await asyncio.sleep(30)
        await stage.node("n2", status="False")
        await asyncio.sleep(30)
        assert (await stage.condition(f"{NODES}/n1", "Ready"))["status"] == "Unknown"
        await stage.report("n1")
        await asyncio.sleep(40)
        assert (await stage.condition(f"{NODES}/n2", "Ready"))["status"] == "False"
        await stage.report("n1")
        await asyncio.sleep(15)
        assert (await stage.condition(f"{NODES}/n2", "Ready"))["status"] == "Unknown"

    play(story, NodeLifecycleController)


def test_a_taint_without_a_time_counts_from_when_it_was_seen() -> None:
    tolerations = [
        {"key": "mine", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
        {"key": "harmless", "operator": "Exists"},
    ]

    async def story(stage: Stage) -> None:
        await stage.node("n")
        await a_running_pod(stage, "pod", "n", tolerations=tolerations)
        await stage.start()
        mine = {"key": "mine", "effect": "NoExecute"}
        harmless = {"key": "harmless", "effect": "NoExecute"}
        await stage.patch(f"{NODES}/n", {"spec": {"taints": [mine]}})
        await asyncio.sleep(40)
        await stage.patch(f"{NODES}/n", {"spec": {"taints": [mine, harmless]}})
        await asyncio.sleep(15)
        assert not await stage.pod_leaves("pod")
        await asyncio.sleep(10)
        assert await stage.pod_leaves("pod")

    play(story, TaintEvictionController)


def test_nodes_are_given_up_one_after_the_other() -> None:
    evicting = {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}

    async def story(stage: Stage) -> None:
        for node in ("a", "b", "lives"):
            await stage.node(node)
        await stage.start()
        alive = asyncio.create_task(keep_alive(stage, "lives"))
        await asyncio.sleep(55)
        lost = [node for node in ("a", "b") if await has_taints(stage, node, evicting)]
        assert len(lost) == 1
        (other,) = {"a", "b"} - set(lost)
        assert await taints(stage, other) == {(UNREACHABLE, "NoSchedule")}
        await stage.until(lambda: has_taints(stage, other, evicting), 10)
        alive.cancel()

    play(story, NodeLifecycleController)


@pytest.mark.parametrize("judges", [True, False])
def test_a_node_that_never_said_anything(judges: bool) -> None:
    async def story(stage: Stage) -> None:
        taint = {"key": NOT_READY, "effect": "NoSchedule"}
        await stage.server.post(NODES, {"metadata": {"name": "n"}, "spec": {"taints": [taint]}})
        await stage.start()
        await asyncio.sleep(55)
        assert await stage.condition(f"{NODES}/n", "Ready") == {}
        await asyncio.sleep(10)
        ready = await stage.condition(f"{NODES}/n", "Ready")
        assert ready.get("reason") == ("NodeStatusNeverUpdated" if judges else None)

    play(
        story,
        partial(
            NodeLifecycleController, settings=NodeLifecycleSettings(monitors_without_lease=judges)
        ),
    )


def test_conditions_and_cordons_become_taints() -> None:
    async def story(stage: Stage) -> None:
        await stage.node("n")
        await stage.start()
        found = await stage.server.get(f"{NODES}/n")
        found["status"]["conditions"].append({"type": "DiskPressure", "status": "True"})
        await stage.patch(f"{NODES}/n/status", {"status": found["status"]})
        mine = {"key": "mine", "effect": "NoSchedule"}
        await stage.patch(f"{NODES}/n", {"spec": {"unschedulable": True, "taints": [mine]}})
        wanted = {
            ("node.kubernetes.io/disk-pressure", "NoSchedule"),
            ("node.kubernetes.io/unschedulable", "NoSchedule"),
            ("mine", "NoSchedule"),
        }
        await stage.until(lambda: has_taints(stage, "n", wanted))
        await stage.patch(f"{NODES}/n", {"spec": {"unschedulable": None}})
        await stage.report("n")
        await stage.until(lambda: has_taints(stage, "n", {("mine", "NoSchedule")}))

    play(story, NodeLifecycleController)


def test_pods_of_a_node_that_is_gone_are_collected() -> None:
    async def story(stage: Stage) -> None:
        for node in ("gone", "here"):
            await stage.node(node)
            await a_running_pod(stage, f"pod-{node}", node)
        await stage.start()
        finalizers = {"metadata": {"finalizers": ["example.com/keep"]}}
        await stage.patch(f"{PODS}/pod-gone", finalizers)
        await stage.server.ask("DELETE", f"{NODES}/gone")
        await asyncio.sleep(39)
        assert not await stage.pod_leaves("pod-gone")
        await asyncio.sleep(2)
        pod = await stage.server.get(f"{PODS}/pod-gone")
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 0
        assert pod["status"]["phase"] == "Failed"
        why = await stage.condition(f"{PODS}/pod-gone", "DisruptionTarget")
        assert why["reason"] == "DeletionByPodGC"
        assert why["message"] == "PodGC: node no longer exists"
        await stage.patch(f"{PODS}/pod-gone", {"metadata": {"finalizers": None}})
        assert await stage.find(f"{PODS}/pod-gone") is None
        assert not await stage.pod_leaves("pod-here")

    play(story, PodGarbageCollector)


def test_a_node_that_comes_back_keeps_its_pods() -> None:
    async def story(stage: Stage) -> None:
        await stage.node("n")
        await a_running_pod(stage, "pod", "n")
        await stage.start()
        await stage.server.ask("DELETE", f"{NODES}/n")
        await asyncio.sleep(20)
        await stage.node("n")
        await asyncio.sleep(60)
        assert not await stage.pod_leaves("pod")

    play(story, PodGarbageCollector)


def test_pods_on_a_node_out_of_service_are_ended() -> None:
    async def story(stage: Stage) -> None:
        await stage.node("n", status="False")
        await a_running_pod(stage, "stuck", "n")
        await a_running_pod(stage, "runs", "n")
        await stage.server.ask("DELETE", f"{PODS}/stuck")
        await stage.start()
        await asyncio.sleep(30)
        assert await stage.find(f"{PODS}/stuck") is not None
        taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute", "value": "x"}
        await stage.patch(f"{NODES}/n", {"spec": {"taints": [taint]}})
        await stage.until(lambda: is_gone(stage, "stuck"))
        assert not await stage.pod_leaves("runs")

    play(story, PodGarbageCollector)


def test_a_pod_that_never_had_a_node_fails_before_it_goes() -> None:
    async def story(stage: Stage) -> None:
        await stage.pod("p")
        await stage.patch(f"{PODS}/p", {"metadata": {"finalizers": ["example.com/keep"]}})
        await stage.start()
        await stage.server.ask("DELETE", f"{PODS}/p")
        await asyncio.sleep(10)
        assert (await stage.server.get(f"{PODS}/p"))["status"]["phase"] == "Pending"
        await asyncio.sleep(15)
        pod = await stage.server.get(f"{PODS}/p")
        assert pod["status"]["phase"] == "Failed"
        collected = "pod_gc_collector_force_delete_pods_total"
        labels = {"namespace": "default", "reason": "unscheduled"}
        await asyncio.sleep(200)
        assert stage.manager.registry.get_sample_value(collected, labels) == 1

    play(story, PodGarbageCollector)


def test_too_many_finished_pods() -> None:
    async def story(stage: Stage) -> None:
        for index in range(4):
            await stage.pod(f"p{index}")
            status = {"phase": "Failed" if index == 3 else "Succeeded"}
            if index == 3:
                status["reason"] = "Evicted"
            await stage.patch(f"{PODS}/p{index}/status", {"status": status})
        await stage.pod("pending")
        await stage.start()
        await stage.until(lambda: is_gone(stage, "p0"))
        await stage.until(lambda: is_gone(stage, "p3"))
        await asyncio.sleep(60)
        for name in ("p1", "p2", "pending"):
            assert await stage.find(f"{PODS}/{name}") is not None

    settings = CollectorSettings(finished_pods=2)
    play(story, partial(PodGarbageCollector, settings=settings))


async def has_taints(stage: Stage, node: str, wanted: set[tuple[str, str]]) -> bool:
    return await taints(stage, node) == wanted


async def is_gone(stage: Stage, pod: str) -> bool:
    return await stage.find(f"{PODS}/{pod}") is None
