"""Devices that are taken before anything is measured: one claim per node holds them all."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from workloads import DRIVER, pods_per_node  # type: ignore[import-not-found]

from allot.testing.servers import LocalServer

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
CEL_PODS = {
    "cel2": ((0, 1), (2, 3), (6, 5), (8, 7)),
    "cel3": ((0, 1, 2), (6, 5, 8)),
    "cel4": ((0, 1, 2, 3), (6, 5, 8, 7)),
}
"""The devices of each pod that fits on a node, by variant."""


async def fill(server: LocalServer, variant: str, nodes: int, share: float) -> None:
    """Take the devices of so many pods on every node."""
    pods = round(pods_per_node(variant) * share)
    if not pods:
        return
    for number in range(nodes):
        await _fill_node(server, variant, f"node-{number:04}", pods)


async def _fill_node(server: LocalServer, variant: str, node: str, pods: int) -> None:
    results = _results(variant, node, pods)
    exactly = {
        "deviceClassName": "tier-0" if variant == "prio" else "bench",
        "count": len(results),
    }
    claim = await server.post(
        CLAIMS,
        {
            "metadata": {"name": f"fill-{node}"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        },
    )
    claim["status"] = {"allocation": {"devices": {"results": results}}}
    answer = await server.ask("PUT", f"{CLAIMS}/fill-{node}/status", claim)
    assert answer.code == 200, answer


def _results(variant: str, node: str, pods: int) -> list[dict[str, Any]]:
    if variant == "shares":
        each = {"consumedCapacity": {"units": str(pods // 10)}}
        return [
            _result(node, f"d{index}") | {"shareID": str(uuid4())} | each for index in range(10)
        ]
    if variant == "derived":
        names = [name for pod in range(pods) for name in (f"gpu{pod}", f"nic{4 - pod}")]
    elif variant in CEL_PODS:
        names = [f"d{index}" for pod in CEL_PODS[variant][:pods] for index in pod]
    else:
        names = [f"d{index}" for index in range(pods)]
    return [_result(node, name) for name in names]


def _result(node: str, device: str) -> dict[str, Any]:
    return {"request": "r", "driver": DRIVER, "pool": node, "device": device}
