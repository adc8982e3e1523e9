"""Feature gates that are switched off and on again, per component, with pods that run, wait and are pending."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from allot.features import (
    BINDING_CONDITIONS,
    DEFAULTS,
    DEVICE_STATUS,
    GRANULAR_STATUS_AUTHORIZATION,
    PRIORITIZED_LIST,
    FeatureGates,
    with_overrides,
)
from allot.rules import RuleSet
from allot.testing.servers import LocalServer
from allot.testing.virtual_time import run_in_virtual_time
from tests.integration.test_binding_conditions import (
    BASE,
    CLAIMS,
    PODS,
    Scene,
    a_scene,
    device_with,
)

NO_LISTS = with_overrides({PRIORITIZED_LIST: False})
NO_CONDITIONS = with_overrides({BINDING_CONDITIONS: False})
NO_DEVICE_STATUS = with_overrides(
    {BINDING_CONDITIONS: False, DEVICE_STATUS: False, GRANULAR_STATUS_AUTHORIZATION: False}
)


@asynccontextmanager
async def another_server(scene: Scene, gates: FeatureGates) -> AsyncIterator[LocalServer]:
    """A server with other gates on the same store."""
    other = LocalServer(scene.server.store, gates=gates)
    await other.server.start()
    try:
        yield other
    finally:
        await other.server.close()


async def condition_of(scene: Scene, pod: str) -> str:
    found = await scene.server.get(f"{PODS}/{pod}")
    conditions = found["status"].get("conditions") or [{}]
    message: str = conditions[0].get("message", "")
    return message


# --- KEP-4816 ---


def a_list(name: str) -> dict[str, Any]:
    alternatives = [{"name": each, "deviceClassName": "fpga"} for each in ("a", "b")]
    request = {"name": "r", "firstAvailable": alternatives}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}


def test_prioritized_lists_are_switched_off_and_on() -> None:
    """The order of the KEP's own upgrade test: scheduler off, server off, scheduler on, server on."""

    async def run() -> None:
        async with a_scene({"n1": [device_with("fpga-0"), device_with("fpga-1")]}) as scene:
            server = scene.server
            await server.post(CLAIMS, a_list("first"))
            await scene.pod("running", "first")
            await scene.until(lambda: scene.node_of("running"))

            await scene.stop()
            scene.start(NO_LISTS)
            await server.post(CLAIMS, a_list("second"))
            await scene.pod("pending", "second")
            await scene.pod("sharing", "first")
            await scene.until(lambda: scene.node_of("sharing"))  # it is allocated already
            await scene.until(lambda: condition_of(scene, "pending"))
            assert "request r: has subrequests, but the DRAPrioritizedList feature is disabled" in (
                await condition_of(scene, "pending")
            )
            assert await scene.device_of("second") is None

            async with another_server(scene, NO_LISTS) as off:
                for gates in (NO_LISTS, DEFAULTS):
                    await scene.stop()
                    scene.start(gates)
                    refused = await off.ask("POST", CLAIMS, a_list("third"))
                    assert refused.code == 422, refused
                    assert "exactly one of" in refused.json["message"]
                stored = await off.get(f"{CLAIMS}/first")
                stored["metadata"]["labels"] = {"touched": "yes"}
                answer = await off.ask("PUT", f"{CLAIMS}/first", stored)
                assert answer.code == 200, answer
                assert answer.json["spec"] == stored["spec"]

            await scene.until(lambda: scene.node_of("pending"))
            await server.post(CLAIMS, a_list("third"))

    run_in_virtual_time(run())


# --- KEP-5007 ---


def test_a_waiting_pod_gets_another_device_when_the_gate_is_switched_off() -> None:
    async def run() -> None:
        async with a_scene({"n1": [device_with("slow", "Programmed")]}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            await scene.until(lambda: scene.device_of("c"))
            await scene.stop()
            await scene.publish("n1", [device_with("quick")], "z-pool")
            scene.start(NO_CONDITIONS)
            await scene.until(lambda: scene.node_of("p"))
            assert await scene.device_of("c") == "quick"

    run_in_virtual_time(run())


def test_a_waiting_pod_is_released_while_the_gate_is_off_and_waits_again_when_it_is_on() -> None:
    async def run() -> None:
        async with a_scene({"n1": [device_with("slow", "Programmed")]}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            await scene.until(lambda: scene.device_of("c"))
            await scene.stop()
            scene.start(NO_CONDITIONS)

            async def is_released() -> bool:
                return await scene.device_of("c") is None

            await scene.until(is_released)
            await asyncio.sleep(30)
            assert await scene.node_of("p") is None
            assert await scene.device_of("c") is None

            await scene.stop()
            scene.start()
            await scene.until(lambda: scene.device_of("c"))
            assert await scene.node_of("p") is None
            await scene.set_condition("c", "Programmed")
            await scene.until(lambda: scene.node_of("p"))

    run_in_virtual_time(run())


def test_a_device_that_is_ready_is_kept_when_the_gate_is_switched_off() -> None:
    async def run() -> None:
        async with a_scene({"n1": [device_with("slow", "Programmed")]}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            await scene.until(lambda: scene.device_of("c"))
            await scene.stop()
            await scene.set_condition("c", "Programmed")
            scene.start(NO_CONDITIONS)
            await scene.until(lambda: scene.node_of("p"))
            assert await scene.device_of("c") == "slow"

    run_in_virtual_time(run())


def test_with_the_rules_of_kubernetes_a_waiting_pod_is_bound_at_once() -> None:
    async def run() -> None:
        async with a_scene({"n1": [device_with("slow", "Programmed")]}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            await scene.until(lambda: scene.device_of("c"))
            await scene.stop()
            scene.start(NO_CONDITIONS.with_rules(RuleSet.V1_38))
            await scene.until(lambda: scene.node_of("p"))
            assert await scene.device_of("c") == "slow"

    run_in_virtual_time(run())


@pytest.mark.parametrize("gates", [NO_CONDITIONS, NO_DEVICE_STATUS], ids=["conditions", "status"])
def test_a_server_with_the_gate_off_keeps_what_is_stored(gates: FeatureGates) -> None:
    async def run() -> None:
        async with (
            a_scene({"n1": [device_with("slow", "Programmed")]}) as scene,
            another_server(scene, gates) as off,
        ):
            stored = await off.get(f"{BASE}/resourceslices/slice-n1")
            stored["metadata"]["labels"] = {"touched": "yes"}
            answer = await off.ask("PUT", f"{BASE}/resourceslices/slice-n1", stored)
            assert answer.json["spec"]["devices"] == [device_with("slow", "Programmed")]
            new = {**stored, "metadata": {"name": "new"}}
            new["spec"] = {**stored["spec"], "pool": {**stored["spec"]["pool"], "name": "new"}}
            created = await off.post(f"{BASE}/resourceslices", new)
            assert created["spec"]["devices"] == [{"name": "slow"}]

    run_in_virtual_time(run())


def test_device_status_is_dropped_only_from_claims_that_have_none() -> None:
    async def run() -> None:
        async with a_scene({"n1": [device_with("slow", "Programmed")]}) as scene:
            for name in ("with", "without"):
                await scene.claim(name)
            await scene.pod("p", "with")
            await scene.until(lambda: scene.device_of("with"))
            await scene.stop()
            await scene.set_condition("with", "Programmed", "False")
            async with another_server(scene, NO_DEVICE_STATUS) as off:
                stored = await off.get(f"{CLAIMS}/with")
                (entry,) = stored["status"]["devices"]
                entry["conditions"][0]["status"] = "True"
                answer = await off.ask("PUT", f"{CLAIMS}/with/status", stored)
                assert answer.json["status"]["devices"] == [entry]

                other = await off.get(f"{CLAIMS}/without")
                other["status"] = {**stored["status"], "reservedFor": []}
                other["status"]["allocation"] = None
                other["status"]["devices"] = [entry]
                answer = await off.ask("PUT", f"{CLAIMS}/without/status", other)
                assert "devices" not in (answer.json.get("status") or {}), answer
            scene.start()

    run_in_virtual_time(run())
