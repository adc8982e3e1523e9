"""HorizontalPodAutoscalers that are written in one version and changed in the other."""

from __future__ import annotations

import asyncio
from typing import Any

from allot.testing.servers import LocalServer

V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
V2 = V1.replace("v1", "v2")
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


def autoscaler(version: str, **spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"scaleTargetRef": target, **spec},
    }


def test_both_versions_can_be_applied() -> None:
    async def story() -> None:
        async with LocalServer() as server:
            for place, version, most in ((V2, "v2", 3), (V1, "v1", 4), (V2, "v2", 5)):
                path = f"{place}/a?fieldManager={version}&force=true"
                answer = await server.ask(
                    "PATCH", path, autoscaler(version, maxReplicas=most), content_type=APPLY
                )
                assert answer.code in (200, 201), answer
            found = await server.get(f"{V1}/a")
            assert found["spec"]["maxReplicas"] == 5

    asyncio.run(story())


def test_fields_of_v1_can_be_patched() -> None:
    async def story() -> None:
        async with LocalServer() as server:
            await server.post(V2, autoscaler("v2", maxReplicas=3))
            change = {"spec": {"targetCPUUtilizationPercentage": 30}}
            answer = await server.ask("PATCH", f"{V1}/a", change, content_type=MERGE)
            assert answer.code == 200, answer
            stored = await server.get(f"{V2}/a")
            resource = stored["spec"]["metrics"][0]["resource"]
            assert resource["target"] == {"type": "Utilization", "averageUtilization": 30}

    asyncio.run(story())
