"""`DRADeviceBindingConditions` and `DRAResourceClaimDeviceStatus` are disabled while a pod waits in PreBind (KEP-5007).

The stories in `tests/gates` switch every gate off and on, for each component.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from allot.features import (
    BINDING_CONDITIONS,
    DEVICE_STATUS,
    GRANULAR_STATUS_AUTHORIZATION,
    FeatureGates,
    with_overrides,
)
from allot.rules import RuleSet
from allot.testing.servers import LocalServer
from allot.testing.virtual_time import run_in_virtual_time
from tests.integration.test_binding_conditions import (
    CLAIMS,
    Scene,
    a_binding_scene,
    device_with,
)

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


def test_a_waiting_pod_gets_another_device_when_the_gate_is_switched_off() -> None:
    async def run() -> None:
        async with a_binding_scene({"n1": [device_with("slow", "Programmed")]}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            await scene.until(lambda: scene.device_of("c"))
            await scene.stop()
            await scene.publish("n1", [device_with("quick")], "z-pool")
            scene.start(NO_CONDITIONS)
            await scene.until(lambda: scene.node_of("p"))
            assert await scene.device_of("c") == "quick"

    run_in_virtual_time(run())


def test_a_device_that_is_ready_is_kept_when_the_gate_is_switched_off() -> None:
    async def run() -> None:
        async with a_binding_scene({"n1": [device_with("slow", "Programmed")]}) as scene:
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
        async with a_binding_scene({"n1": [device_with("slow", "Programmed")]}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            await scene.until(lambda: scene.device_of("c"))
            await scene.stop()
            scene.start(NO_CONDITIONS.with_rules(RuleSet.V1_38))
            await scene.until(lambda: scene.node_of("p"))
            assert await scene.device_of("c") == "slow"

    run_in_virtual_time(run())


def test_device_status_is_dropped_only_from_claims_that_have_none() -> None:
    async def run() -> None:
        async with a_binding_scene({"n1": [device_with("slow", "Programmed")]}) as scene:
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
