"""Ephemeral containers and resizes of pods, through the API."""

from __future__ import annotations

import asyncio
from typing import Any

from allot.testing.servers import LocalServer, ServerResponse

PODS = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"


def pod(**resources: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    }


async def patch(server: LocalServer, part: str, spec: dict[str, Any]) -> ServerResponse:
    return await server.ask("PATCH", f"{PODS}/p/{part}", {"spec": spec}, content_type=STRATEGIC)


def test_ephemeral_containers_are_added_and_never_removed() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(PODS, pod())
            debugger = {"name": "d", "image": "busybox", "targetContainerName": "c"}

            added = await patch(server, "ephemeralcontainers", {"ephemeralContainers": [debugger]})
            assert added.code == 200, added
            (container,) = added.json["spec"]["ephemeralContainers"]
            assert container["imagePullPolicy"] == "Always"
            assert added.json["metadata"]["generation"] == 2

            removed = {"$patch": "delete", "name": "d"}
            refused = await patch(server, "ephemeralcontainers", {"ephemeralContainers": [removed]})
            assert refused.code == 422
            assert "may not be removed" in refused.json["message"]

    asyncio.run(run())


def test_bad_ephemeral_containers_are_refused() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(PODS, pod())
            bad = {"name": "c", "targetContainerName": "x", "ports": [{"containerPort": 1}]}
            answer = await patch(server, "ephemeralcontainers", {"ephemeralContainers": [bad]})
            fields = {cause["field"]: cause["reason"] for cause in answer.json["details"]["causes"]}
            assert fields == {
                "spec.ephemeralContainers[0].name": "FieldValueDuplicate",
                "spec.ephemeralContainers[0].image": "FieldValueRequired",
                "spec.ephemeralContainers[0].targetContainerName": "FieldValueNotFound",
                "spec.ephemeralContainers[0].ports": "FieldValueForbidden",
            }

    asyncio.run(run())


def test_a_resize_changes_resources_and_nothing_else() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(PODS, pod(requests={"cpu": "100m"}))
            change = {"name": "c", "image": "other", "resources": {"requests": {"cpu": "200m"}}}

            answer = await patch(server, "resize", {"containers": [change]})
            assert answer.code == 200, answer
            (container,) = answer.json["spec"]["containers"]
            assert container["resources"] == {"requests": {"cpu": "200m"}}
            assert container["image"] == "i"
            assert answer.json["metadata"]["generation"] == 2

            guaranteed = {
                "limits": {"cpu": "1", "memory": "1Gi"},
                "requests": {"cpu": "1", "memory": "1Gi"},
            }
            answer = await patch(
                server, "resize", {"containers": [{"name": "c", "resources": guaranteed}]}
            )
            assert answer.code == 422
            assert "Pod QOS Class may not change" in answer.json["message"]

    asyncio.run(run())
