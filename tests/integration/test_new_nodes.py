"""New nodes are tainted until they are ready, and get the annotations that Kubernetes' controllers write."""

from __future__ import annotations

import asyncio
from typing import Any

from allot.testing.cluster import VirtualTimeCluster
from allot.testing.manifests import a_node_manifest
from allot.testing.servers import LocalServer
from allot.testing.settings import ClusterSettings

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OTHER = {"key": "example.com/x", "effect": "NoExecute"}


def new_node(ready: str, *taints: dict[str, Any]) -> dict[str, Any]:
    return a_node_manifest("n", taints=taints, conditions={"Ready": ready})


def test_a_new_node_is_tainted_as_not_ready() -> None:
    async def run() -> None:
        async with LocalServer(taints_new_nodes=True) as server:
            node = await server.post("/api/v1/nodes", new_node("True", OTHER))
            assert node["spec"]["taints"] == [OTHER, NOT_READY]
            await server.ask("DELETE", "/api/v1/nodes/n")
            node = await server.post("/api/v1/nodes", new_node("True", NOT_READY))
            assert node["spec"]["taints"] == [NOT_READY]

    asyncio.run(run())


def test_the_taint_goes_when_the_node_is_ready_and_the_cache_time_is_written() -> None:
    with VirtualTimeCluster(ClusterSettings(has_nodes=False)) as cluster:
        cluster.apply(new_node("True", OTHER))

        node = cluster.wait_for(
            "nodes",
            "n",
            lambda node: (
                node is not None
                and node["spec"].get("taints") == [OTHER]
                and node["metadata"].get("annotations") == {"node.alpha.kubernetes.io/ttl": "0"}
            ),
        )

        assert node is not None
        assert node["status"]["conditions"][0]["lastHeartbeatTime"] is None


def test_the_taint_stays_while_the_node_is_not_ready() -> None:
    with VirtualTimeCluster(ClusterSettings(has_nodes=False)) as cluster:
        cluster.apply(new_node("False"))
        cluster.advance(2)

        node = cluster.get("nodes", "n")
        assert node is not None
        assert NOT_READY in [
            {"key": taint["key"], "effect": taint["effect"]} for taint in node["spec"]["taints"]
        ]
