"""Pods wait until their devices are ready (KEP-5007): API server and scheduler in one process, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.features import DEFAULTS, FeatureGates
from allot.rules import RuleSet
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.configuration import ProfileConfiguration, SchedulerConfiguration
from allot.testing.manifests import a_device_manifest
from allot.testing.servers import TOKEN, LocalServer, ServerResponse
from allot.testing.virtual_time import VirtualClock, run_in_virtual_time

DRIVER = "fpga.example.com"
BASE = "/apis/resource.k8s.io/v1"
CLAIMS = f"{BASE}/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"


def device_with(
    name: str, *conditions: str, failures: tuple[str, ...] = ("Broken",)
) -> dict[str, Any]:
    return a_device_manifest(
        name, binding_conditions=conditions, binding_failure_conditions=failures
    )


class Scene:
    """A server, a scheduler that can be replaced, and what tests do with them."""

    def __init__(self, server: LocalServer, timeout: str) -> None:
        self.server = server
        profile = ProfileConfiguration(args={"DynamicResources": {"bindingTimeout": timeout}})
        self._configuration = SchedulerConfiguration(
            profiles=(profile,), initial_backoff_seconds=0.05, max_backoff_seconds=0.1
        )
        self._running: asyncio.Task[None] | None = None

    def start(self, gates: FeatureGates = DEFAULTS) -> None:
        clock = VirtualClock()
        client = Client(InProcessTransport(self.server.server.app, TOKEN), clock=clock)
        self.scheduler = SchedulerProcess(
            client, self._configuration, gates, clock=clock.now, today=clock.whole_seconds
        )
        self._running = asyncio.create_task(self.scheduler.run())

    async def stop(self) -> None:
        assert self._running is not None
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    async def build(self, devices_by_node: dict[str, list[dict[str, Any]]]) -> None:
        await self.server.post(f"{BASE}/deviceclasses", {"metadata": {"name": "fpga"}, "spec": {}})
        for node, devices in devices_by_node.items():
            created = await self.server.post("/api/v1/nodes", {"metadata": {"name": node}})
            created["status"] = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}}
            await self.server.ask("PUT", f"/api/v1/nodes/{node}/status", created)
            await self.publish(node, devices)

    async def publish(self, node: str, devices: list[dict[str, Any]], pool_name: str = "") -> None:
        pool = {"name": pool_name or node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        await self.server.post(
            f"{BASE}/resourceslices",
            {"metadata": {"name": f"slice-{pool_name or node}"}, "spec": spec},
        )

    async def claim(self, name: str) -> None:
        request = {"name": "r", "exactly": {"deviceClassName": "fpga"}}
        body = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        await self.server.post(CLAIMS, body)

    async def pod(self, name: str, *claims: str) -> None:
        entries = [{"name": f"c{index}", "resourceClaimName": c} for index, c in enumerate(claims)]
        spec = {"containers": [{"name": "m", "image": "i"}], "resourceClaims": entries}
        await self.server.post(PODS, {"metadata": {"name": name}, "spec": spec})

    async def set_condition(self, claim: str, type_: str, status: str = "True") -> None:
        found = await self.server.get(f"{CLAIMS}/{claim}")
        (result,) = found["status"]["allocation"]["devices"]["results"]
        entry = {name: result[name] for name in ("driver", "pool", "device")}
        condition = {
            "type": type_,
            "status": status,
            "reason": "Because",
            "message": "of that",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        found["status"]["devices"] = [{**entry, "conditions": [condition]}]
        answer = await self.server.ask("PUT", f"{CLAIMS}/{claim}/status", found)
        assert answer.code == 200, answer

    async def device_of(self, claim: str) -> str | None:
        found = await self.server.get(f"{CLAIMS}/{claim}")
        allocation = (found.get("status") or {}).get("allocation")
        return allocation["devices"]["results"][0]["device"] if allocation else None

    async def node_of(self, pod: str) -> str | None:
        found: str | None = (await self.server.get(f"{PODS}/{pod}"))["spec"].get("nodeName")
        return found

    async def until(self, holds: Callable[[], Awaitable[Any]], seconds: float = 120) -> None:
        async with asyncio.timeout(seconds):
            while not await holds():
                await asyncio.sleep(0.01)


@asynccontextmanager
async def a_binding_scene(
    devices: dict[str, list[dict[str, Any]]], timeout: str = "600s"
) -> AsyncIterator[Scene]:
    async with LocalServer() as server:
        scene = Scene(server, timeout)
        await scene.build(devices)
        scene.start()
        try:
            yield scene
        finally:
            await scene.stop()


def test_a_pod_is_bound_when_its_device_is_ready() -> None:
    async def run() -> None:
        async with a_binding_scene({"n1": [device_with("fpga-0", "Programmed")]}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            await scene.until(lambda: scene.device_of("c"))
            claim = await scene.server.get(f"{CLAIMS}/c")
            allocation = claim["status"]["allocation"]
            assert allocation["allocationTimestamp"]
            assert allocation["devices"]["results"][0]["bindingConditions"] == ["Programmed"]
            await asyncio.sleep(0.2)
            assert await scene.node_of("p") is None
            pod = await scene.server.get(f"{PODS}/p")
            assert pod["status"]["nominatedNodeName"] == "n1"
            await scene.set_condition("c", "Programmed")
            await scene.until(lambda: scene.node_of("p"), 1)
            listed = await scene.server.get("/api/v1/namespaces/default/events")
            notes = {event["reason"]: event["message"] for event in listed["items"]}
            assert notes["BindingConditionsPending"] == (
                "waiting for binding conditions for device on node n1: "
                f"{DRIVER}/n1/fpga-0: Programmed"
                "; the driver's controller must report this within 600 s of the allocation"
            )
            annotations = {
                event["reason"]: event["metadata"].get("annotations") for event in listed["items"]
            }
            assert annotations["BindingConditionsPending"] == {
                "allot.dev/binding-timeout-seconds": "600"
            }

    run_in_virtual_time(run())


def test_devices_without_conditions_come_first() -> None:
    async def run() -> None:
        async with a_binding_scene({"n1": [device_with("slow", "Programmed")]}) as scene:
            await scene.publish("n1", [device_with("quick")], "z-pool")
            await asyncio.sleep(0.1)
            await scene.claim("c")
            await scene.pod("p", "c")
            await scene.until(lambda: scene.node_of("p"))
            assert await scene.device_of("c") == "quick"

    run_in_virtual_time(run())


def test_after_a_failure_everything_is_cleared_and_another_device_found() -> None:
    async def run() -> None:
        async with a_binding_scene({"n1": [device_with("fpga-0", "Programmed")]}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            await scene.until(lambda: scene.device_of("c"))
            await scene.server.ask("DELETE", f"{BASE}/resourceslices/slice-n1")
            await scene.set_condition("c", "Broken")

            async def is_cleared() -> bool:
                status = (await scene.server.get(f"{CLAIMS}/c")).get("status") or {}
                return not any(
                    status.get(name) for name in ("allocation", "devices", "reservedFor")
                )

            await scene.until(is_cleared)
            pod = await scene.server.get(f"{PODS}/p")
            messages = [each.get("message", "") for each in pod["status"]["conditions"]]
            assert any("device binding failed: claim=c, reason=Because" in m for m in messages), pod
            await scene.publish("n1", [device_with("fpga-1")])
            await scene.until(lambda: scene.node_of("p"))
            assert await scene.device_of("c") == "fpga-1"

    run_in_virtual_time(run())


def test_waiting_ends_with_the_timeout() -> None:
    async def run() -> None:
        devices = {"n1": [device_with("fpga-0", "Programmed")]}
        async with a_binding_scene(devices, timeout="1s") as scene:
            await scene.claim("c")
            await scene.pod("p", "c")

            async def has_timed_out() -> bool:
                pod = await scene.server.get(f"{PODS}/p")
                conditions = pod["status"].get("conditions", [])
                return any("device binding timeout: claim=c" in c["message"] for c in conditions)

            await scene.until(has_timed_out)

    run_in_virtual_time(run())


def test_a_pod_that_is_deleted_while_it_waits_lets_go_of_everything() -> None:
    async def run() -> None:
        async with a_binding_scene({"n1": [device_with("fpga-0", "Programmed")]}) as scene:
            for name in ("a", "b"):
                await scene.claim(name)
            await scene.pod("p", "a")
            await scene.until(lambda: scene.device_of("a"))
            await scene.server.ask("DELETE", f"{PODS}/p")

            async def is_released() -> bool:
                return await scene.device_of("a") is None

            await scene.until(is_released)
            assert len(scene.scheduler.cluster.pods) == 0
            await scene.pod("q", "b")
            await scene.until(lambda: scene.device_of("b"))

    run_in_virtual_time(run())


def test_a_new_scheduler_goes_on_waiting_for_the_same_device() -> None:
    async def run() -> None:
        conditioned = [device_with("fpga-0", "Programmed")]
        async with a_binding_scene({"n1": conditioned, "n2": conditioned}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            await scene.until(lambda: scene.device_of("c"))
            before = (await scene.server.get(f"{CLAIMS}/c"))["status"]["allocation"]
            await scene.stop()
            scene.start()
            await asyncio.sleep(0.3)
            assert (await scene.server.get(f"{CLAIMS}/c"))["status"]["allocation"] == before
            await scene.set_condition("c", "Programmed")
            await scene.until(lambda: scene.node_of("p"))
            (result,) = before["devices"]["results"]
            assert await scene.node_of("p") == result["pool"]

    run_in_virtual_time(run())


def test_a_hundred_waiting_pods_do_not_hold_up_others() -> None:
    async def run() -> None:
        many = [device_with(f"fpga-{number}", "Programmed") for number in range(50)]
        async with a_binding_scene({"n1": many, "n2": many}) as scene:
            for number in range(100):
                await scene.claim(f"c{number}")
                await scene.pod(f"p{number}", f"c{number}")
            for number in range(100):
                await scene.until(partial(scene.device_of, f"c{number}"))
            await scene.pod("ordinary")
            await scene.until(lambda: scene.node_of("ordinary"), 2)
            for number in range(100):
                await scene.set_condition(f"c{number}", "Programmed")
            for number in range(100):
                await scene.until(partial(scene.node_of, f"p{number}"), 5)

    run_in_virtual_time(run())


def test_metrics_count_pre_bind_executions_and_devices() -> None:
    async def run() -> None:
        devices = [device_with(f"fpga-{number}", "Programmed") for number in range(2)]
        async with a_binding_scene({"n1": devices}) as scene:
            for name in ("a", "b"):
                await scene.claim(name)
            await scene.pod("p", "a", "b")
            for name in ("a", "b"):
                await scene.until(partial(scene.device_of, name))
                await scene.set_condition(name, "Programmed")
            await scene.until(lambda: scene.node_of("p"))
            registry = scene.scheduler.metrics.registry
            status = {"profile": "default-scheduler", "status": "success"}
            prefix = "scheduler_dra_bindingconditions"
            assert registry.get_sample_value(f"{prefix}_allocations_total", status) == 1
            devices_total = f"{prefix}_device_allocations_total"
            assert registry.get_sample_value(devices_total, status | {"driver": DRIVER}) == 2

    run_in_virtual_time(run())


def test_metrics_count_every_execution_and_none_without_conditions() -> None:
    async def run() -> None:
        devices = [device_with(f"fpga-{number}", "Programmed") for number in range(2)]
        async with a_binding_scene({"n1": devices}, timeout="10s") as scene:
            registry = scene.scheduler.metrics.registry

            def count(kind: str, status: str, **labels: str) -> float | None:
                labels |= {"profile": "default-scheduler", "status": status}
                return registry.get_sample_value(
                    f"scheduler_dra_bindingconditions_{kind}_total", labels
                )

            async def has_timed_out(times: int) -> bool:
                return count("allocations", "timeout") == times

            for name in ("a", "b"):
                await scene.claim(name)
            await scene.pod("p", "a", "b")
            for times in (1, 2):
                await scene.until(partial(has_timed_out, times), 600)
            for name in ("a", "b"):
                await scene.until(partial(scene.device_of, name), 600)
                await scene.set_condition(name, "Programmed")
            await scene.until(lambda: scene.node_of("p"))
            await scene.publish("n1", [device_with("plain")], "plain")
            await scene.claim("c")
            await scene.pod("q", "c")
            await scene.until(lambda: scene.node_of("q"))

            assert count("allocations", "timeout") == 2
            assert count("allocations", "success") == 1
            assert count("device_allocations", "timeout", driver=DRIVER) == 4
            assert count("device_allocations", "success", driver=DRIVER) == 2

    run_in_virtual_time(run())


ONLY_CONDITIONS = {"name": "fpga-0", "bindingConditions": ["Programmed"]}
ONLY_FAILURES = {"name": "fpga-0", "bindingFailureConditions": ["Broken"]}


@pytest.mark.parametrize("device", [ONLY_CONDITIONS, ONLY_FAILURES])
def test_one_kind_of_conditions_is_accepted_with_a_warning(device: dict[str, Any]) -> None:
    async def post(gates: FeatureGates) -> ServerResponse:
        async with LocalServer(gates=gates) as server:
            pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": [device]}
            return await server.ask(
                "POST", f"{BASE}/resourceslices", {"metadata": {"name": "s"}, "spec": spec}
            )

    accepted = run_in_virtual_time(post(DEFAULTS))
    assert accepted.code == 201, accepted
    (warning,) = accepted.header("warning")
    assert "Kubernetes v1.38 refuses it" in warning
    assert "OneKindOfBindingConditions" in warning
    refused = run_in_virtual_time(post(DEFAULTS.with_rules(RuleSet.V1_38)))
    assert refused.code == 422
    assert "are required to use" in refused.json["message"]


def test_a_device_without_failure_conditions_is_waited_for() -> None:
    async def run() -> None:
        async with a_binding_scene({"n1": [ONLY_CONDITIONS]}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            await scene.until(lambda: scene.device_of("c"))
            await asyncio.sleep(1)
            assert await scene.node_of("p") is None
            await scene.set_condition("c", "Programmed")
            await scene.until(lambda: scene.node_of("p"))

    run_in_virtual_time(run())


def test_a_device_with_nothing_but_failure_conditions_is_not_waited_for() -> None:
    async def run() -> None:
        async with a_binding_scene({"n1": [ONLY_FAILURES]}) as scene:
            await scene.claim("c")
            await scene.pod("p", "c")
            await scene.until(lambda: scene.node_of("p"), 5)
            listed = await scene.server.get("/api/v1/namespaces/default/events")
            reasons = {event["reason"] for event in listed["items"]}
            assert "BindingConditionsPending" not in reasons

    run_in_virtual_time(run())
