"""Namespaces, service accounts, certificates and finished jobs, against the API server in this process."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any

from allot.controllers.garbage_collector import GarbageCollector
from allot.controllers.namespace_objects import RootCaPublisher, ServiceAccountController
from allot.controllers.namespaces import NamespaceController
from allot.controllers.ttl_after_finished import TtlAfterFinishedController
from tests.integration.housekeeping_cluster import Cluster, owned_by, play

CM = "ConfigMap"
CLAIM = "resource.k8s.io/v1/ResourceClaim"
REQUESTS = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]


def test_a_namespace_is_emptied_and_goes() -> None:
    async def story(cluster: Cluster) -> None:
        async with cluster.running(NamespaceController):
            await cluster.create("Namespace", "empty")
            await cluster.create("Namespace", "dying")
            await cluster.create(CLAIM, "c", "dying", spec={"devices": {"requests": REQUESTS}})
            await cluster.create(CM, "held", "dying", finalizers=["test.dev/hold"])
            await cluster.delete("Namespace", "empty")
            await cluster.until_gone("Namespace", "empty")
            await cluster.delete("Namespace", "dying")
            await cluster.until_gone(CLAIM, "c", "dying")

            async def reported() -> Any:
                namespace = await cluster.get("Namespace", "dying")
                assert namespace
                conditions = namespace["status"].get("conditions", [])
                told = {each["type"]: each for each in conditions}
                left = told.get("NamespaceContentRemaining", {})
                if left.get("message", "").count("resource instances") != 1:
                    return None
                return told

            told = await cluster.until(reported)
            assert told["NamespaceContentRemaining"]["message"] == (
                "Some resources are remaining: configmaps. has 1 resource instances"
            )
            assert told["NamespaceFinalizersRemaining"]["message"] == (
                "Some content in the namespace has finalizers remaining: "
                "test.dev/hold in 1 resource instances"
            )
            assert told["NamespaceDeletionContentFailure"]["status"] == "False"
            await cluster.patch(CM, "held", {"metadata": {"finalizers": None}}, "dying")
            await cluster.until_gone("Namespace", "dying")

    play(story)


def test_pods_stop_before_the_rest_of_their_namespace_goes() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create("Namespace", "busy")
        containers = [{"name": "c", "image": "i"}]
        spec = {"containers": containers, "nodeName": "n", "terminationGracePeriodSeconds": 3600}
        await cluster.create("Pod", "p", "busy", spec=spec)
        await cluster.create(CM, "needed", "busy")
        await cluster.delete("Namespace", "busy")
        async with cluster.running(NamespaceController):

            async def is_stopping() -> Any:
                pod = await cluster.get("Pod", "p", "busy")
                assert pod
                return pod["metadata"].get("deletionGracePeriodSeconds") == 3600

            await cluster.until(is_stopping)
            assert await cluster.get(CM, "needed", "busy")
            path = "/api/v1/namespaces/busy/pods/p"
            answer = await cluster.server.ask("DELETE", path, query={"gracePeriodSeconds": "0"})
            assert answer.code == 200
            await cluster.until_gone("Namespace", "busy")

    play(story)


def test_every_namespace_is_furnished() -> None:
    async def story(cluster: Cluster) -> None:
        publisher = partial(RootCaPublisher, certificates="PEM")
        async with cluster.running(ServiceAccountController, publisher, NamespaceController):
            await cluster.create("Namespace", "new")
            for space in ("kube-system", "new"):
                await cluster.until(partial(cluster.get, "ServiceAccount", "default", space))
                found = await cluster.until(partial(cluster.get, CM, "kube-root-ca.crt", space))
                assert found["data"] == {"ca.crt": "PEM"}
            account = await cluster.get("ServiceAccount", "default", "new")
            assert account
            await cluster.delete("ServiceAccount", "default", namespace="new")

            async def is_back() -> Any:
                again = await cluster.get("ServiceAccount", "default", "new")
                return again and again["metadata"]["uid"] != account["metadata"]["uid"]

            await cluster.until(is_back)
            await cluster.patch(CM, "kube-root-ca.crt", {"data": {"ca.crt": "no"}}, "new")

            async def is_mended() -> Any:
                found = await cluster.get(CM, "kube-root-ca.crt", "new")
                return found and found["data"] == {"ca.crt": "PEM"}

            await cluster.until(is_mended)
            await cluster.delete("Namespace", "new")
            await cluster.until_gone("Namespace", "new")

    play(story)


def test_finished_jobs_go_with_what_they_own() -> None:
    async def story(cluster: Cluster) -> None:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
        ended = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        done = {"type": "Complete", "status": "True", "lastTransitionTime": ended}
        jobs = {}
        for name, ttl in (("soon", 0), ("later", 3600)):
            spec = {"ttlSecondsAfterFinished": ttl, "template": template}
            jobs[name] = await cluster.create("batch/v1/Job", name, spec=spec)
        await cluster.create(CM, "d", ownerReferences=owned_by(jobs["soon"], block=True))
        async with cluster.running(TtlAfterFinishedController, GarbageCollector):
            for name in jobs:
                status = {"status": {"conditions": [done], "startTime": ended}}
                await cluster.patch("batch/v1/Job", name, status, part="status")
            await cluster.until_gone("batch/v1/Job", "soon")
            assert await cluster.get(CM, "d") is None
            assert await cluster.get("batch/v1/Job", "later")

    play(story)
