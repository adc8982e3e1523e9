"""Workloads against an API server in this process; a task plays the nodes."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from allot.api.core import Pod
from allot.client.client import Client
from allot.client.component_users import CONTROLLER_MANAGER, ComponentUser, controller_user
from allot.client.errors import ApiStatusError
from allot.client.in_process import InProcessTransport
from allot.client.informer import Informer
from allot.client.options import DeleteOptions, PatchType
from allot.client.resources import PODS
from allot.controllers.manager import ControllerManager
from allot.controllers.workloads.accessors import annotations_of, is_deleting, uid_of
from allot.controllers.workloads.daemon_set import DaemonSetController
from allot.controllers.workloads.daemon_set.pods import node_of
from allot.controllers.workloads.deployment import DeploymentController
from allot.controllers.workloads.job import JobController
from allot.controllers.workloads.replica_set import ReplicaSetController
from allot.controllers.workloads.replication_controller import ReplicationControllerController
from allot.controllers.workloads.stateful_set import StatefulSetController
from allot.testing.servers import TOKEN, LocalServer

WORKLOAD_CONTROLLERS = (
    ReplicaSetController,
    ReplicationControllerController,
    DeploymentController,
    StatefulSetController,
    DaemonSetController,
    JobController,
)
APPS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
POD_PATH = "/api/v1/namespaces/default/pods"
ENDS_AS = "test/ends-as"
TRACKING = "batch.kubernetes.io/job-tracking"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Nodes:
    """Runs every pod as soon as it is there, and ends it when it is to be deleted."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.succeeded: defaultdict[str, set[str]] = defaultdict(set)
        """Pods that came to a good end, by job, whatever became of them later."""
        self._informer: Informer[Pod] = Informer(client, PODS)
        self._todo: asyncio.Queue[Pod] = asyncio.Queue()
        self._informer.add_handlers(
            self._todo.put_nowait, lambda _old, new: self._todo.put_nowait(new)
        )

    async def run(self) -> None:
        self._informer.start()
        try:
            while True:
                with suppress(ApiStatusError):  # another client was faster
                    await self._look_at(await self._todo.get())
        finally:
            await self._informer.stop()

    async def _look_at(self, pod: Pod) -> None:
        if is_deleting(pod):
            if pod.get("metadata", "deletionGracePeriodSeconds"):
                options = DeleteOptions(uid=uid_of(pod), grace_period_seconds=0)
                await self._client.delete(PODS, pod.key, options)
            return
        if pod.phase != "Pending":
            return
        if not pod.node_name:
            await self._client.bind(pod.key, uid_of(pod), node_of(pod) or "n1")
            return
        phase = annotations_of(pod).get(ENDS_AS, "Running")
        condition = {"type": "Ready", "status": str(phase == "Running")}
        status = {"phase": phase, "conditions": [condition]}
        await self._client.patch(
            PODS, pod.key, {"status": status}, PatchType.STRATEGIC, subresource="status"
        )
        if phase == "Succeeded":
            self.succeeded[pod.get("metadata", "labels", "job-name")].add(uid_of(pod))


class Scene:
    """A server, nodes, and controllers that can be stopped and started."""

    def __init__(self, server: LocalServer) -> None:
        self.server = server
        self.nodes = Nodes(self.client())
        self._tasks: list[asyncio.Task[None]] = []

    def client(self, user: str | ComponentUser = TOKEN) -> Client:
        return Client(InProcessTransport(self.server.server.app, user))

    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    def start_controllers(self) -> asyncio.Task[None]:
        """Controllers, each with the role of its own."""
        manager = ControllerManager(
            self.client(CONTROLLER_MANAGER),
            WORKLOAD_CONTROLLERS,
            controller_client=lambda name: self.client(controller_user(name)),
        )
        return self.start(manager.run())

    async def stop(self, *tasks: asyncio.Task[None]) -> None:
        for task in tasks or self._tasks:
            task.cancel()
        await asyncio.gather(*(tasks or self._tasks), return_exceptions=True)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(150):
            while not await holds():
                await asyncio.sleep(0.01)

    async def patch(self, path: str, body: Any, content_type: str = MERGE) -> None:
        answer = await self.server.ask("PATCH", path, body, content_type=content_type)
        assert answer.code == 200, answer

    async def pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.server.get(POD_PATH))["items"]
        return found

    async def images(self) -> Counter[str]:
        """The images of pods that are not being deleted."""
        return Counter(
            pod["spec"]["containers"][0]["image"]
            for pod in await self.pods()
            if "deletionTimestamp" not in pod["metadata"]
        )

    async def status(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.server.get(path)).get("status") or {}
        return found

    async def until_status(self, path: str, **wanted: Any) -> None:
        """Until the status has these values, and is about the present spec."""

        async def holds() -> bool:
            found = await self.server.get(path)
            status = found.get("status") or {}
            current = status.get("observedGeneration", found["metadata"]["generation"])
            return bool(
                current == found["metadata"]["generation"]
                and {name: status.get(name) for name in wanted} == wanted
            )

        await self.until(holds)

    async def until_condition(self, path: str, type_: str) -> dict[str, Any]:
        async def holds() -> bool:
            conditions = (await self.status(path)).get("conditions") or []
            return any(c["type"] == type_ and c["status"] == "True" for c in conditions)

        await self.until(holds)
        return await self.status(path)


@asynccontextmanager
async def a_workload_scene() -> AsyncIterator[Scene]:
    async with LocalServer() as server:
        scene = Scene(server)
        for name in ("n1", "n2"):
            await server.post("/api/v1/nodes", {"metadata": {"name": name}})
        scene.start(scene.nodes.run())
        try:
            yield scene
        finally:
            await scene.stop()


def a_workload(name: str, image: str = "i:1", **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def a_job(name: str, ends_as: str = "Succeeded", **spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"annotations": {ENDS_AS: ends_as}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def new_image(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}


def test_a_deployment_is_rolled_out_scaled_and_rolled_back() -> None:
    async def play() -> None:
        async with a_workload_scene() as scene:
            scene.start_controllers()
            path = f"{APPS}/deployments/web"
            await scene.server.post(f"{APPS}/deployments", a_workload("web", replicas=3))
            await scene.until_status(path, availableReplicas=3, updatedReplicas=3)

            await scene.patch(path, new_image("i:2"), STRATEGIC)
            await scene.until_status(path, replicas=3, availableReplicas=3, updatedReplicas=3)
            assert await scene.images() == {"i:2": 3}

            await scene.patch(path, {"spec": {"replicas": 1}})
            await scene.until_status(path, replicas=1, availableReplicas=1)

            await scene.patch(path, new_image("i:1"), STRATEGIC)
            await scene.until_status(path, replicas=1, updatedReplicas=1, availableReplicas=1)
            assert await scene.images() == {"i:1": 1}
            deployment = await scene.server.get(path)
            revision = "deployment.kubernetes.io/revision"
            assert deployment["metadata"]["annotations"][revision] == "3"
            sets = (await scene.server.get(f"{APPS}/replicasets"))["items"]
            assert {s["metadata"]["annotations"][revision] for s in sets} == {"2", "3"}
            reasons = {c["type"]: c["reason"] for c in deployment["status"]["conditions"]}
            assert reasons == {
                "Available": "MinimumReplicasAvailable",
                "Progressing": "NewReplicaSetAvailable",
            }

    asyncio.run(play())


def test_recreating_waits_for_the_last_old_pod() -> None:
    async def play() -> None:
        async with a_workload_scene() as scene:
            scene.start_controllers()
            path = f"{APPS}/deployments/web"
            body = a_workload("web", replicas=2, strategy={"type": "Recreate"})
            await scene.server.post(f"{APPS}/deployments", body)
            await scene.until_status(path, availableReplicas=2)

            async with scene.server.watch(POD_PATH) as events:
                await scene.patch(path, new_image("i:2"), STRATEGIC)
                living: dict[str, str] = {}
                while Counter(living.values()) != {"i:2": 2}:
                    event = await events.next(30)
                    assert event is not None
                    pod = event["object"]
                    living[pod["metadata"]["name"]] = pod["spec"]["containers"][0]["image"]
                    if event["type"] == "DELETED":
                        del living[pod["metadata"]["name"]]
                    assert len(set(living.values())) <= 1, "never both at the same time"

    asyncio.run(play())


def test_a_replica_set_takes_and_lets_go_by_labels() -> None:
    async def play() -> None:
        async with a_workload_scene() as scene:
            scene.start_controllers()
            orphan = {
                "metadata": {"name": "orphan", "labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            }
            await scene.server.post(POD_PATH, orphan)
            await scene.server.post(f"{APPS}/replicasets", a_workload("web", replicas=2))
            await scene.until_status(f"{APPS}/replicasets/web", readyReplicas=2)
            names = {pod["metadata"]["name"] for pod in await scene.pods()}
            assert "orphan" in names
            assert len(names) == 2

            await scene.patch(f"{POD_PATH}/orphan", {"metadata": {"labels": {"app": "x"}}})

            async def replaced() -> bool:
                pods = await scene.pods()
                owned = [pod for pod in pods if pod["metadata"].get("ownerReferences")]
                return len(pods) == 3 and len(owned) == 2

            await scene.until(replaced)
            left = await scene.server.get(f"{POD_PATH}/orphan")
            assert "ownerReferences" not in left["metadata"]

    asyncio.run(play())


def test_a_job_counts_right_although_controllers_are_killed_and_run_twice() -> None:
    async def play() -> None:
        async with a_workload_scene() as scene:
            controllers = [scene.start_controllers(), scene.start_controllers()]
            await scene.server.post(JOBS, a_job("j", completions=12, parallelism=4))
            await scene.server.post(
                JOBS, a_job("i", completions=6, parallelism=3, completionMode="Indexed")
            )
            for _ in range(5):
                await asyncio.sleep(0.03)
                await scene.stop(controllers.pop(0))
                controllers.append(scene.start_controllers())
            status = await scene.until_condition(f"{JOBS}/j", "Complete")
            pods = [p for p in await scene.pods() if p["metadata"]["labels"]["job-name"] == "j"]
            succeeded = len(scene.nodes.succeeded["j"])
            assert 12 <= status["succeeded"] <= succeeded, "no pod counts twice"
            assert "active" not in status
            assert status["uncountedTerminatedPods"] == {}
            assert not any(TRACKING in pod["metadata"].get("finalizers", ()) for pod in pods)
            indexed = await scene.until_condition(f"{JOBS}/i", "Complete")
            assert indexed["completedIndexes"] == "0-5"
            assert indexed["succeeded"] == 6

    asyncio.run(play())


def test_a_job_that_fails_takes_its_other_pods_along() -> None:
    async def play() -> None:
        async with a_workload_scene() as scene:
            scene.start_controllers()
            body = a_job("j", "Running", completions=3, parallelism=3, backoffLimit=0)
            await scene.server.post(JOBS, body)
            await scene.until_status(f"{JOBS}/j", active=3, ready=3)
            first = (await scene.pods())[0]["metadata"]["name"]
            failed = {"status": {"phase": "Failed"}}
            await scene.patch(f"{POD_PATH}/{first}/status", failed)

            status = await scene.until_condition(f"{JOBS}/j", "Failed")
            assert {c["reason"] for c in status["conditions"]} == {"BackoffLimitExceeded"}
            assert status["failed"] == 3
            assert [pod["metadata"]["name"] for pod in await scene.pods()] == [first]

    asyncio.run(play())


def test_pods_of_a_job_that_is_gone_are_not_held_back() -> None:
    async def play() -> None:
        async with a_workload_scene() as scene:
            scene.start_controllers()
            await scene.server.post(JOBS, a_job("j", "Running"))
            await scene.until_status(f"{JOBS}/j", ready=1)
            (pod,) = await scene.pods()
            assert pod["metadata"]["finalizers"] == [TRACKING]
            background = {"propagationPolicy": "Background"}
            assert (await scene.server.ask("DELETE", f"{JOBS}/j", background)).code == 200

            async def freed() -> bool:
                return not any(
                    TRACKING in p["metadata"].get("finalizers", ()) for p in await scene.pods()
                )

            await scene.until(freed)

    asyncio.run(play())


def test_a_daemon_set_follows_nodes_and_updates() -> None:
    async def play() -> None:
        async with a_workload_scene() as scene:
            scene.start_controllers()
            path = f"{APPS}/daemonsets/d"
            await scene.server.post(f"{APPS}/daemonsets", a_workload("d"))
            await scene.until_status(path, desiredNumberScheduled=2, numberAvailable=2)
            await scene.server.post("/api/v1/nodes", {"metadata": {"name": "n3"}})
            await scene.until_status(path, desiredNumberScheduled=3, numberAvailable=3)

            await scene.patch(path, new_image("i:2"), STRATEGIC)
            await scene.until_status(path, updatedNumberScheduled=3, numberAvailable=3)
            assert await scene.images() == {"i:2": 3}
            revisions = (await scene.server.get(f"{APPS}/controllerrevisions"))["items"]
            assert sorted(found["revision"] for found in revisions) == [1, 2]

            taint = {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}}
            await scene.patch("/api/v1/nodes/n3", taint)
            await scene.until_status(path, desiredNumberScheduled=2, numberMisscheduled=0)

    asyncio.run(play())


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_a_stateful_set_grows_updates_and_shrinks(policy: str) -> None:
    async def play() -> None:
        async with a_workload_scene() as scene:
            scene.start_controllers()
            path = f"{APPS}/statefulsets/db"
            claim = {
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }
            body = a_workload(
                "db",
                replicas=3,
                serviceName="db",
                podManagementPolicy=policy,
                volumeClaimTemplates=[claim],
            )
            await scene.server.post(f"{APPS}/statefulsets", body)
            await scene.until_status(path, readyReplicas=3, currentReplicas=3)
            names = sorted(pod["metadata"]["name"] for pod in await scene.pods())
            assert names == ["db-0", "db-1", "db-2"]
            claims = await scene.server.get("/api/v1/namespaces/default/persistentvolumeclaims")
            assert len(claims["items"]) == 3

            await scene.patch(path, new_image("i:2"), STRATEGIC)
            await scene.until_status(path, updatedReplicas=3, readyReplicas=3, currentReplicas=3)
            assert await scene.images() == {"i:2": 3}
            status = await scene.status(path)
            assert status["currentRevision"] == status["updateRevision"]

            await scene.patch(path, {"spec": {"replicas": 1}})
            await scene.until_status(path, replicas=1, readyReplicas=1)
            assert [pod["metadata"]["name"] for pod in await scene.pods()] == ["db-0"]

    asyncio.run(play())
