"""Users who create, scale, change and delete workloads with claims, whole namespaces, and questions about pools."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

from allot.kubelet.settings import FOREVER, RUN_SECONDS
from allot.testing.servers import LocalServer

Json = dict[str, Any]

DRIVER: Final = "gpu.example.com"
NODES: Final = 4
DEVICES: Final = 32
HOME: Final = "home"
MERGE: Final = "application/merge-patch+json"
LONGEST_PAUSE_SECONDS: Final = 1.5
REQUESTS: Final = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests"
RULES: Final = "/apis/resource.k8s.io/v1/devicetaintrules"
POLICIES: Final = ("Background", "Background", "Foreground", "Orphan")


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def deployments(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments"


def jobs(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def claims(namespace: str) -> str:
    return f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"


def templates(namespace: str) -> str:
    return f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaimtemplates"


ONE_DEVICE: Final = {
    "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
}


class Users:
    """What they do is random, and what it leads to is not their business."""

    def __init__(self, server: LocalServer, seed: int) -> None:
        self._server = server
        self._chance = random.Random(seed)  # noqa: S311 - a game
        self._made = 0
        self._namespaces: list[str] = []
        self._deployments: list[str] = []
        """Paths of those that may still be there."""

    async def furnish(self) -> None:
        await self._post(
            "/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}}
        )
        amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
        for number in range(NODES):
            name = f"n{number}"
            status = {"capacity": amounts, "allocatable": amounts}
            await self._post("/api/v1/nodes", {"metadata": {"name": name}, "status": status})
            spec = {
                "driver": DRIVER,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"gpu-{index}"} for index in range(DEVICES)],
            }
            slices = "/apis/resource.k8s.io/v1/resourceslices"
            await self._post(slices, {"metadata": {"name": name}, "spec": spec})
        await self._create_namespace(HOME)

    async def do_something(self) -> None:
        action = self._chance.choice(self._actions())
        await action()
        await asyncio.sleep(self._chance.random() * LONGEST_PAUSE_SECONDS)

    def _actions(self) -> list[Callable[[], Awaitable[None]]]:
        return [
            *[self._add_pod] * 3,
            *[self._add_job] * 2,
            *[self._add_deployment] * 2,
            *[self._remove_pod] * 3,
            self._scale,
            self._roll,
            self._remove_deployment,
            self._remove_deployment,
            self._lose_claim,
            *[self._ask_about_pools] * 2,
            self._add_namespace,
            self._remove_namespace,
            *[self._touch] * 3,
            self._taint_or_not,
        ]

    async def go_home(self) -> None:
        """What runs forever goes, except deployments at home, so that what waits for devices gets some."""
        while self._namespaces:
            await self._remove_namespace()
        await self._delete(f"{RULES}/broken")
        for pod in (await self._server.get(pods(HOME)))["items"]:
            annotations = pod["metadata"].get("annotations", {})
            if annotations.get(RUN_SECONDS) == FOREVER and "ownerReferences" not in pod["metadata"]:
                await self._delete(f"{pods(HOME)}/{pod['metadata']['name']}")

    # --- what is created ---

    async def _add_pod(self) -> None:
        await self._pod_in(self._place())

    async def _pod_in(self, namespace: str) -> None:
        seconds = self._chance.choice([FOREVER, "0", "3", "10"])
        metadata = {"name": self._name("pod"), "annotations": {RUN_SECONDS: seconds}}
        await self._post(
            pods(namespace), {"metadata": metadata, "spec": self._pod_spec(restarts="Never")}
        )

    async def _add_job(self) -> None:
        await self._job_in(self._place())

    async def _job_in(self, namespace: str) -> None:
        template = {
            "metadata": {"annotations": {RUN_SECONDS: self._chance.choice(["0", "2", "5"])}},
            "spec": self._pod_spec(restarts="Never"),
        }
        spec: Json = {
            "completions": self._chance.randint(1, 4),
            "parallelism": self._chance.randint(1, 2),
            "completionMode": self._chance.choice(["NonIndexed", "Indexed"]),
            "backoffLimit": 1000,
            "template": template,
        }
        if self._chance.random() < 0.3:
            spec["ttlSecondsAfterFinished"] = 10
        await self._post(jobs(namespace), {"metadata": {"name": self._name("job")}, "spec": spec})

    async def _add_deployment(self) -> None:
        await self._deployment_in(self._place())

    async def _deployment_in(self, namespace: str) -> None:
        name = self._name("web")
        spec: Json = {
            "replicas": self._chance.randint(0, 2),
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": self._pod_spec()},
            "strategy": {"type": self._chance.choice(["Recreate", "RollingUpdate"])},
        }
        await self._post(deployments(namespace), {"metadata": {"name": name}, "spec": spec})
        self._deployments.append(f"{deployments(namespace)}/{name}")

    def _pod_spec(self, restarts: str = "Always") -> Json:
        entries: list[Json] = [{"name": "own", "resourceClaimTemplateName": "t"}]
        if self._chance.random() < 0.3:
            entries.append({"name": "shared", "resourceClaimName": "shared"})
        return {
            "restartPolicy": restarts,
            "containers": [{"name": "c", "image": "example.com/i"}],
            "resourceClaims": entries,
            "terminationGracePeriodSeconds": self._chance.choice([0, 1, 5]),
        }

    async def _ask_about_pools(self) -> None:
        name = self._name("question")
        await self._post(REQUESTS, {"metadata": {"name": name}, "spec": {"driver": DRIVER}})

    async def _add_namespace(self) -> None:
        name = self._name("space")
        await self._create_namespace(name)
        self._namespaces.append(name)
        for fill in (self._pod_in, self._job_in, self._deployment_in):
            await fill(name)

    async def _create_namespace(self, name: str) -> None:
        await self._post("/api/v1/namespaces", {"metadata": {"name": name}})
        await self._post(templates(name), {"metadata": {"name": "t"}, "spec": {"spec": ONE_DEVICE}})
        await self._post(claims(name), {"metadata": {"name": "shared"}, "spec": ONE_DEVICE})

    # --- what is changed ---

    async def _scale(self) -> None:
        if self._deployments:
            path = self._chance.choice(self._deployments)
            await self._patch(path, {"spec": {"replicas": self._chance.randint(0, 3)}})

    async def _roll(self) -> None:
        if self._deployments:
            path = self._chance.choice(self._deployments)
            annotations = {"version": str(self._chance.randrange(3))}
            await self._patch(
                path, {"spec": {"template": {"metadata": {"annotations": annotations}}}}
            )

    async def _touch(self) -> None:
        """Change an unrelated field, so that writers get a conflict and read again."""
        for place in (pods, claims, jobs, deployments):
            for found in (await self._server.get(place(HOME)))["items"]:
                if self._chance.random() < 0.3:
                    path = f"{place(HOME)}/{found['metadata']['name']}"
                    labels = {"touched": str(self._chance.randrange(100))}
                    await self._patch(path, {"metadata": {"labels": labels}})

    async def _taint_or_not(self) -> None:
        """All devices of one node break, or are mended."""
        answer = await self._server.ask("GET", f"{RULES}/broken")
        if answer.code == 200:
            await self._delete(f"{RULES}/broken")
            return
        spec = {
            "deviceSelector": {"driver": DRIVER, "pool": f"n{self._chance.randrange(NODES)}"},
            "taint": {"key": "example.com/broken", "value": "yes", "effect": "NoExecute"},
        }
        await self._post(RULES, {"metadata": {"name": "broken"}, "spec": spec})

    # --- what is deleted ---

    async def _remove_pod(self) -> None:
        namespace = self._place()
        found = (await self._server.get(pods(namespace)))["items"]
        if found:
            grace = self._chance.choice([None, None, 0])
            options = {} if grace is None else {"gracePeriodSeconds": grace}
            path = f"{pods(namespace)}/{self._chance.choice(found)['metadata']['name']}"
            await self._delete(path, **options)

    async def _remove_deployment(self) -> None:
        if self._deployments:
            path = self._deployments.pop(self._chance.randrange(len(self._deployments)))
            await self._delete(path, propagationPolicy=self._chance.choice(POLICIES))

    async def _lose_claim(self) -> None:
        namespace = self._place()
        found = (await self._server.get(claims(namespace)))["items"]
        made = [each for each in found if "ownerReferences" in each["metadata"]]
        if made:
            name = self._chance.choice(made)["metadata"]["name"]
            await self._delete(f"{claims(namespace)}/{name}")

    async def _remove_namespace(self) -> None:
        if self._namespaces:
            name = self._namespaces.pop(self._chance.randrange(len(self._namespaces)))
            start = deployments(name)
            self._deployments = [each for each in self._deployments if not each.startswith(start)]
            await self._delete(f"/api/v1/namespaces/{name}")

    # --- the server ---

    def _place(self) -> str:
        return self._chance.choice([HOME, HOME, HOME, *self._namespaces])

    def _name(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix}-{self._made}"

    async def _post(self, path: str, body: Json) -> None:
        await self._server.post(path, body)

    async def _patch(self, path: str, patch: Json) -> None:
        answer = await self._server.ask("PATCH", path, patch, content_type=MERGE)
        assert answer.code in (200, 404), answer

    async def _delete(self, path: str, **options: Any) -> None:
        answer = await self._server.ask("DELETE", path, options or None)
        assert answer.code in (200, 202, 404, 409), answer
