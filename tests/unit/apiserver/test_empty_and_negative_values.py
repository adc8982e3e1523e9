"""Empty strings and lists, negative numbers, and rules that go on after the first problem, as v1.38 answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from allot.features import FeatureGates
from allot.testing.servers import LocalServer

DRA = "/apis/resource.k8s.io"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = f"{DRA}/v1/namespaces/default/resourceclaims"
SLICES = f"{DRA}/v1/resourceslices"
REQUESTS = f"{DRA}/v1alpha3/resourcepoolstatusrequests"
GATES = FeatureGates(
    (
        "DRAListTypeAttributes",
        "DRAPartitionableDevices",
        "DRAPartitionableDevicesType",
        "DRAResourcePoolStatus",
        "DRAResourceClaimDeviceStatus",
        "ResourceHealthStatus",
        "DynamicResourceAllocation",
    )
)
CONDITION = {
    "type": "",
    "status": "True",
    "reason": "R",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def causes(answer: Any) -> list[tuple[str, str]]:
    assert answer.code == 422, answer
    return [(cause["field"], cause["message"]) for cause in answer.json["details"]["causes"]]


def play(scenario: Callable[[LocalServer], Awaitable[None]]) -> None:
    async def main() -> None:
        async with LocalServer(gates=GATES) as server:
            await scenario(server)

    asyncio.run(main())


async def put_status(server: LocalServer, place: str, status: dict[str, Any]) -> Any:
    found = await server.get(place)
    return await server.ask("PUT", f"{place}/status", {**found, "status": status})


def test_pools_and_conditions() -> None:
    async def scenario(server: LocalServer) -> None:
        await server.post(
            REQUESTS, {"metadata": {"name": "r"}, "spec": {"driver": "a.example.com"}}
        )
        pool = {
            "driver": "a.example.com",
            "poolName": "p",
            "generation": -1,
            "totalDevices": 1,
            "allocatedDevices": 0,
            "availableDevices": 1,
            "unavailableDevices": 0,
        }
        status = {"poolCount": 1, "pools": [pool], "conditions": [CONDITION]}
        found = causes(await put_status(server, f"{REQUESTS}/r", status))
        assert (
            "status.pools[0].generation",
            "Invalid value: -1: must be greater than or equal to 0",
        ) in found
        assert ("status.conditions[0].type", "Required value: is required") in found

    play(scenario)


def test_attributes_and_partition_types() -> None:
    async def scenario(server: LocalServer) -> None:
        device: dict[str, Any] = {
            "name": "d",
            "attributes": {"x": {"strings": [], "string": "a"}},
            "consumesCounters": [{"counterSet": "c", "counters": {"k": {"value": "1"}}}],
        }
        spec: dict[str, Any] = {
            "driver": "a.example.com",
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 2},
            "devices": [device],
            "partitionTypeAttribute": "B_/x",
        }
        body = {"metadata": {"name": "s"}, "spec": spec}
        found = causes(await server.ask("POST", SLICES, body))
        fields = [field for field, _ in found]
        assert fields.count("spec.devices[0].attributes[x]") == 1, "exactly one value"
        assert "spec.devices[0].attributes[x].strings" in fields
        assert "spec.partitionTypeAttribute" in fields
        assert "spec.devices[0].attributes[B_/x]" in fields, "checked also after a bad domain"

    play(scenario)


def test_pods() -> None:
    async def scenario(server: LocalServer) -> None:
        container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "r"}]}}
        claims = [
            {"name": "r", "resourceClaimName": "c"},
            {"name": "q", "resourceClaimName": "d"},
        ]
        pod: dict[str, Any] = {
            "metadata": {"name": "p"},
            "spec": {"resourceClaims": claims, "containers": [container]},
        }
        created = await server.post(PODS, pod)
        spec = {**created["spec"], "resourceClaims": claims[1:]}
        found = causes(await server.ask("PUT", f"{PODS}/p", {**created, "spec": spec}))
        assert [field for field, _ in found] == ["spec.containers[0].resources.claims[0]", "spec"]
        assert found[0][1] == (
            'Not found: "r": must be one of the names in pod.spec.resourceClaims: q'
        )
        mirror = {"name": "m", "annotations": {"kubernetes.io/config.mirror": "x"}}
        static = {**pod, "metadata": mirror, "spec": {**pod["spec"], "nodeName": "n1"}}
        assert causes(await server.ask("POST", PODS, static)) == [
            ("[]", "Forbidden: static pods do not support resource claims")
        ]

    play(scenario)
