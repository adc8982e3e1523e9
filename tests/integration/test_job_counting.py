"""Jobs whose controller has old copies of their pods: nothing is counted twice, and nothing concluded too early."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.event_recorder import EventRecorder
from allot.client.in_process import InProcessTransport
from allot.client.informer import InformerFactory
from allot.client.resources import JOBS, PODS
from allot.controllers.controller import ControllerContext
from allot.controllers.workloads.job import JobController
from allot.testing.servers import TOKEN, LocalServer

Json = dict[str, Any]

JOB = ObjectKey("default", "j")
JOBS_PATH = "/apis/batch/v1/namespaces/default/jobs"
PODS_PATH = "/api/v1/namespaces/default/pods"
TRACKING = "batch.kubernetes.io/job-tracking"
MERGE = "application/merge-patch+json"
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}


class OldCopies:
    """The pods of a job as a controller remembers them."""

    def __init__(self, *pods: Pod) -> None:
        self._pods = list(pods)

    def of(self, _: RawObject) -> list[Pod]:
        return self._pods

    async def claim(self, _: RawObject) -> list[Pod]:
        return self._pods


class Scene:
    def __init__(self, server: LocalServer) -> None:
        self._server = server
        self._client = Client(InProcessTransport(server.server.app, TOKEN))

    async def job(self, **status: Any) -> RawObject:
        """A job of two, of which so much is known."""
        spec = {"completions": 2, "template": TEMPLATE}
        await self._server.post(JOBS_PATH, {"metadata": {"name": JOB.name}, "spec": spec})
        await self._patch(f"{JOBS_PATH}/{JOB.name}/status", {"status": status})
        return await self.current_job()

    async def current_job(self) -> RawObject:
        return await self._client.get(JOBS, JOB)

    async def finished_pod(self, job: RawObject) -> Pod:
        metadata = job.data["metadata"]
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
        labels = job.get("spec", "selector", "matchLabels")
        about = {"name": "p", "labels": labels, "ownerReferences": [owner]}
        body = {"metadata": {**about, "finalizers": [TRACKING]}, "spec": TEMPLATE["spec"]}
        await self._server.post(PODS_PATH, body)
        await self._patch(f"{PODS_PATH}/p/status", {"status": {"phase": "Succeeded"}})
        return await self.pod()

    async def announce(self, uid: str) -> RawObject:
        """A controller stopped before it counted a pod."""
        status = {"uncountedTerminatedPods": {"succeeded": [uid]}}
        await self._patch(f"{JOBS_PATH}/{JOB.name}/status", {"status": status})
        return await self.current_job()

    async def pod(self) -> Pod:
        return await self._client.get(PODS, ObjectKey("default", "p"))

    async def untrack(self) -> None:
        await self._patch(f"{PODS_PATH}/p", {"metadata": {"finalizers": None}})

    async def sync(self, job: RawObject, *copies: Pod) -> Json:
        """What the job's status is afterwards."""
        recorder = EventRecorder(self._client, "test", "test")
        controller = JobController(
            ControllerContext(self._client, InformerFactory(self._client), recorder)
        )
        controller.dependents = OldCopies(*copies)  # type: ignore[assignment]
        await controller.sync(job)
        status: Json = (await self.current_job()).get("status")
        return status

    async def _patch(self, path: str, patch: Json) -> None:
        answer = await self._server.ask("PATCH", path, patch, content_type=MERGE)
        assert answer.code == 200, answer


def play(story: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        async with LocalServer() as server, asyncio.timeout(150):
            await story(Scene(server))

    asyncio.run(main())


def test_a_pod_that_was_counted_a_moment_ago_is_not_added_again() -> None:
    """The job's copy is newer than that of its pod: together they look like two pods that succeeded."""

    async def story(scene: Scene) -> None:
        job = await scene.job(succeeded=1, startTime="2026-01-01T00:00:00Z")
        old_copy = await scene.finished_pod(job)
        await scene.untrack()

        status = await scene.sync(job, old_copy)

        assert status["succeeded"] == 1
        assert "conditions" not in status, "one is still to be done"
        assert status["active"] == 1

    play(story)


def test_a_pod_that_is_about_to_be_counted_and_was_never_seen_loses_its_finalizer_first() -> None:
    """Otherwise it would be found later, and counted again."""

    async def story(scene: Scene) -> None:
        job = await scene.job(startTime="2026-01-01T00:00:00Z")
        uid = (await scene.finished_pod(job)).metadata.uid
        job = await scene.announce(uid)

        status = await scene.sync(job)

        assert status["succeeded"] == 1
        assert not status["uncountedTerminatedPods"]
        assert not (await scene.pod()).metadata.finalizers

    play(story)
