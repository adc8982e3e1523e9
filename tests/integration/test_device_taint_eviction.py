"""Devices get taints, and pods that use them have to go (KEP-5055)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from allot.controllers.device_taint_eviction import DeviceTaintEvictionController
from tests.integration.stage import CLAIMS, PODS, RULES, SLICES, Stage, play

DRIVER = "gpu.example.com"
TAINT = {"key": "example.com/bad", "value": "yes", "effect": "NoExecute"}


async def publish(stage: Stage, *devices: dict[str, Any]) -> None:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": list(devices)}
    await stage.server.post(SLICES, {"metadata": {"name": "s1"}, "spec": spec})


async def taint(stage: Stage, *taints: dict[str, Any], generation: int = 2) -> None:
    spec = {
        "pool": {"name": "n1", "generation": generation, "resourceSliceCount": 1},
        "devices": [{"name": "d0", "taints": list(taints)}, {"name": "d1"}],
    }
    await stage.patch(f"{SLICES}/s1", {"spec": spec})


async def a_user(
    stage: Stage, name: str, device: str = "d0", tolerations: tuple[dict[str, Any], ...] = ()
) -> None:
    """A pod that runs with a device."""
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    body = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
    claim = await stage.server.post(CLAIMS, body)
    entry = {"name": "c", "resourceClaimName": name}
    pod = await stage.pod(name, "n1", resourceClaims=[entry])
    result = {"request": "r", "driver": DRIVER, "pool": "n1", "device": device}
    consumer = {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
    claim["status"] = {
        "allocation": {"devices": {"results": [{**result, "tolerations": list(tolerations)}]}},
        "reservedFor": [consumer],
    }
    answer = await stage.server.ask("PUT", f"{CLAIMS}/{name}/status", claim)
    assert answer.code == 200, answer


async def a_rule(stage: Stage, effect: str, **selector: str) -> None:
    spec = {"deviceSelector": selector, "taint": {**TAINT, "effect": effect}}
    await stage.server.post(RULES, {"metadata": {"name": "rule"}, "spec": spec})


async def said(stage: Stage) -> tuple[str, str, str]:
    found = await stage.condition(f"{RULES}/rule", "EvictionInProgress")
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def test_a_taint_in_a_slice_evicts() -> None:
    async def story(stage: Stage) -> None:
        await publish(stage, {"name": "d0"}, {"name": "d1"})
        await a_user(stage, "user", "d0")
        await a_user(stage, "neighbour", "d1")
        await stage.start()
        await taint(stage, TAINT)
        await stage.until(lambda: stage.pod_leaves("user"))
        why = await stage.condition(f"{PODS}/user", "DisruptionTarget")
        assert why["status"] == "True"
        assert why["reason"] == "DeletionByDeviceTaintManager"
        assert why["message"] == "Device Taint manager: deleting due to NoExecute taint"
        await stage.until(lambda: stage.notes("DeviceTaintManagerEviction"))
        assert await stage.notes("DeviceTaintManagerEviction") == ["Marking for deletion"]
        assert not await stage.pod_leaves("neighbour")
        deletions = "device_taint_eviction_controller_pod_deletions_total"
        assert stage.manager.registry.get_sample_value(deletions) == 1

    play(story, DeviceTaintEvictionController)


def test_a_toleration_delays_and_a_taint_that_goes_calls_it_off() -> None:
    seconds = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}

    async def story(stage: Stage) -> None:
        await publish(stage, {"name": "d0"}, {"name": "d1"})
        await a_user(stage, "user", tolerations=(seconds,))
        await stage.start()
        dated = {**TAINT, "timeAdded": stage.moment()}
        await taint(stage, dated)
        await asyncio.sleep(50)
        assert not await stage.pod_leaves("user")
        await taint(stage, generation=3)
        await stage.until(lambda: stage.notes("DeviceTaintManagerEviction"))
        assert await stage.notes("DeviceTaintManagerEviction") == ["Cancelling deletion"]
        await asyncio.sleep(100)
        assert not await stage.pod_leaves("user")
        await taint(stage, {**TAINT, "timeAdded": stage.moment(-30)}, generation=4)
        await asyncio.sleep(25)
        assert not await stage.pod_leaves("user")
        await asyncio.sleep(10)
        assert await stage.pod_leaves("user")

    play(story, DeviceTaintEvictionController)


def test_a_rule_tells_what_it_would_do_what_it_has_to_do_and_what_it_did() -> None:
    async def story(stage: Stage) -> None:
        await publish(stage, {"name": "d0"}, {"name": "d1"})
        await a_user(stage, "one", "d0")
        await a_user(stage, "two", "d1")
        await stage.start()
        await a_rule(stage, "None", driver=DRIVER)
        await stage.until(lambda: said_reason(stage, "NoEffect"))
        dry_run = (
            "2 published devices selected. 2 allocated devices selected. "
            "2 pods would be evicted in 1 namespace if the effect was NoExecute. This information "
            "will not be updated again. Recreate the DeviceTaintRule to trigger an update."
        )
        assert await said(stage) == ("False", "NoEffect", dry_run)
        assert not await stage.pod_leaves("one")
        # The spec changes: what it does now is said at once, what was done some seconds later.
        await stage.patch(f"{RULES}/rule", {"spec": {"taint": {"effect": "NoExecute"}}})
        await stage.until(lambda: said_reason(stage, "PodsPendingEviction"), 1)
        assert await said(stage) == (
            "True",
            "PodsPendingEviction",
            "2 pods need to be evicted in 1 namespace.",
        )
        await stage.until(lambda: stage.pod_leaves("one"), 1)
        await stage.until(lambda: stage.pod_leaves("two"), 1)
        await asyncio.sleep(5)
        assert (await said(stage))[0] == "True"
        await stage.until(lambda: said_reason(stage, "Completed"), 10)
        assert await said(stage) == (
            "False",
            "Completed",
            "2 pods evicted since starting the controller.",
        )
        rule = await stage.server.get(f"{RULES}/rule")
        (condition,) = rule["status"]["conditions"]
        assert condition["observedGeneration"] == rule["metadata"]["generation"] == 2

    play(story, DeviceTaintEvictionController)


def test_a_taint_rule_without_selector_or_with_another_effect_evicts_no_pod() -> None:
    async def story(stage: Stage) -> None:
        await publish(stage, {"name": "d0"})
        await a_user(stage, "user")
        await stage.start()
        spec = {"taint": TAINT}
        await stage.server.post(RULES, {"metadata": {"name": "nowhere"}, "spec": spec})
        await a_rule(stage, "NoSchedule", driver=DRIVER)
        await stage.until(lambda: said_reason(stage, "OtherEffect"))
        nowhere = await stage.condition(f"{RULES}/nowhere", "EvictionInProgress")
        assert (nowhere["status"], nowhere["reason"]) == ("False", "NotStarted")
        await asyncio.sleep(60)
        assert not await stage.pod_leaves("user")

    play(story, DeviceTaintEvictionController)


def test_a_taint_rule_evicts_from_devices_that_are_no_longer_published() -> None:
    async def story(stage: Stage) -> None:
        await a_user(stage, "user")
        await stage.start()
        await a_rule(stage, "NoExecute", pool="n1", device="d0")
        await stage.until(lambda: stage.pod_leaves("user"))

    play(story, DeviceTaintEvictionController)


def test_a_controller_that_is_started_again_goes_on() -> None:
    """Nothing is evicted twice, and a dry run is not made again."""

    async def story(stage: Stage) -> None:
        await publish(stage, {"name": "d0"}, {"name": "d1"})
        await a_user(stage, "user")
        await stage.start()
        await a_rule(stage, "None", driver=DRIVER)
        await stage.until(lambda: said_reason(stage, "NoEffect"))
        before = await stage.server.get(f"{RULES}/rule")
        await stage.stop()
        await a_user(stage, "another", "d1")
        await stage.start()
        await asyncio.sleep(30)
        assert await stage.server.get(f"{RULES}/rule") == before
        await stage.stop()
        await stage.patch(f"{RULES}/rule", {"spec": {"taint": {"effect": "NoExecute"}}})
        await stage.start()
        await stage.until(lambda: stage.pod_leaves("user"))
        await stage.until(lambda: stage.pod_leaves("another"))
        await stage.until(lambda: said_reason(stage, "Completed"), 15)
        await stage.stop()
        await stage.start()
        await asyncio.sleep(30)
        assert (await said(stage))[:2] == ("False", "Completed")

    play(story, DeviceTaintEvictionController)


def test_a_rule_that_is_changed_back_calls_evictions_off() -> None:
    seconds = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    forever = {"operator": "Exists", "effect": "NoExecute"}

    async def story(stage: Stage) -> None:
        await publish(stage, {"name": "d0"}, {"name": "d1"})
        await a_user(stage, "patient", "d0", (seconds,))
        await a_user(stage, "stoic", "d1", (forever,))
        await stage.start()
        await a_rule(stage, "NoExecute", driver=DRIVER)
        await stage.until(lambda: said_reason(stage, "PodsPendingEviction"))
        assert (await said(stage))[2] == "1 pod needs to be evicted in 1 namespace."
        await asyncio.sleep(60)
        await stage.patch(f"{RULES}/rule", {"spec": {"taint": {"effect": "None"}}})
        await stage.until(lambda: said_reason(stage, "NoEffect"))
        assert "2 allocated devices selected. 1 pod would be evicted" in (await said(stage))[2]
        await stage.until(lambda: stage.notes("DeviceTaintManagerEviction"))
        assert await stage.notes("DeviceTaintManagerEviction") == ["Cancelling deletion"]
        await asyncio.sleep(600)
        assert not await stage.pod_leaves("patient")
        assert not await stage.pod_leaves("stoic")

    play(story, DeviceTaintEvictionController)


def test_two_controllers_at_once_do_no_harm() -> None:
    async def story(stage: Stage) -> None:
        await publish(stage, {"name": "d0"}, {"name": "d1"})
        await a_user(stage, "one", "d0")
        await a_user(stage, "two", "d1")
        another = Stage(stage.server, [DeviceTaintEvictionController])
        await stage.start()
        await another.start()
        try:
            await a_rule(stage, "NoExecute", driver=DRIVER)
            for pod in ("one", "two"):
                await stage.until(partial(stage.pod_leaves, pod))
                found = await stage.server.get(f"{PODS}/{pod}")
                types = [condition["type"] for condition in found["status"]["conditions"]]
                assert types.count("DisruptionTarget") == 1
            await stage.until(lambda: said_reason(stage, "Completed"), 30)
            await asyncio.sleep(60)
            assert (await said(stage))[:2] == ("False", "Completed")
        finally:
            await another.stop()

    play(story, DeviceTaintEvictionController)


async def said_reason(stage: Stage, reason: str) -> bool:
    return (await said(stage))[1] == reason
