"""Quotas: counted by the controller, enforced by the API server in this process."""

from __future__ import annotations

import asyncio
from typing import Any

from allot.controllers.resource_quota import ResourceQuotaController
from allot.testing.manifests import a_claim_manifest, a_pod_manifest
from allot.testing.servers import ServerResponse
from tests.integration.housekeeping_cluster import Cluster, play

QUOTA = "ResourceQuota"
CLAIM = "resource.k8s.io/v1/ResourceClaim"
PODS = "/api/v1/namespaces/default/pods"


def pod_with(name: str, cpu: str | None = None) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}} if cpu else {}
    container = {"name": "c", "image": "i", "resources": resources}
    return a_pod_manifest(name, containers=[container])


def prioritized_claim(name: str, *alternatives: tuple[str, int]) -> dict[str, Any]:
    requests = [
        {"name": f"s{index}", "deviceClassName": class_name, "count": count}
        for index, (class_name, count) in enumerate(alternatives)
    ]
    return a_claim_manifest({"name": "r", "firstAvailable": requests}, name=name)


async def used(cluster: Cluster, name: str, expected: dict[str, str]) -> None:
    async def is_so() -> bool:
        quota = await cluster.get(QUOTA, name)
        assert quota
        found = quota["status"].get("used", {})
        return {entry: found.get(entry) for entry in expected} == expected

    await cluster.until(is_so)


def refused(answer: ServerResponse, text: str) -> None:
    assert answer.code == 403, answer
    assert answer.json["reason"] == "Forbidden"
    assert text in answer.json["message"]


def test_a_quota_is_counted_and_kept() -> None:
    async def story(cluster: Cluster) -> None:
        ask = cluster.server.ask
        await cluster.create("ConfigMap", "before")
        hard = {"pods": "2", "requests.cpu": "1", "count/configmaps": "5", "services": "2"}
        async with cluster.running(ResourceQuotaController):
            await cluster.create(QUOTA, "q", spec={"hard": hard})
            await used(cluster, "q", {"pods": "0", "count/configmaps": "1", "services": "1"})
            refused(
                await ask("POST", PODS, pod_with("p")),
                'pods "p" is forbidden: failed quota: q: must specify requests.cpu for: c',
            )
            await cluster.server.post(PODS, pod_with("p", "600m"))
            # In the same transaction: there is nothing to wait for.
            quota = await cluster.get(QUOTA, "q")
            assert quota
            assert quota["status"]["used"]["requests.cpu"] == "600m"
            refused(
                await ask("POST", PODS, pod_with("p2", "500m")),
                "exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, "
                "limited: requests.cpu=1",
            )
            assert (await ask("POST", f"{PODS}?dryRun=All", pod_with("p2", "1"))).code == 403
            await cluster.patch("Pod", "p", {"status": {"phase": "Succeeded"}}, part="status")
            await used(cluster, "q", {"pods": "0", "requests.cpu": "0"})
            await cluster.delete("ConfigMap", "before")
            await used(cluster, "q", {"count/configmaps": "0"})
            await cluster.patch(QUOTA, "q", {"spec": {"hard": {"secrets": "3", "pods": None}}})
            await used(cluster, "q", {"secrets": "0", "count/configmaps": "0"})
            quota = await cluster.get(QUOTA, "q")
            assert quota
            assert "pods" not in quota["status"]["hard"]

    play(story)


def test_alternatives_of_claims_are_counted_at_their_worst() -> None:
    async def story(cluster: Cluster) -> None:
        path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
        suffix = ".deviceclass.resource.k8s.io/devices"
        for name in ("h100", "t4"):
            await cluster.create("resource.k8s.io/v1/DeviceClass", name, spec={})
        async with cluster.running(ResourceQuotaController):
            hard = {f"h100{suffix}": "2", f"t4{suffix}": "3"}
            await cluster.create(QUOTA, "q", spec={"hard": hard})
            await used(cluster, "q", {f"h100{suffix}": "0", f"t4{suffix}": "0"})
            ask = cluster.server.ask
            big = prioritized_claim("big", ("h100", 1), ("t4", 4))
            refused(await ask("POST", path, big), f"exceeded quota: q, requested: t4{suffix}=4")
            await cluster.server.post(path, prioritized_claim("ok", ("h100", 1), ("t4", 3)))
            await used(cluster, "q", {f"h100{suffix}": "1", f"t4{suffix}": "3"})
            more = prioritized_claim("more", ("h100", 1), ("t4", 1))
            refused(await ask("POST", path, more), "exceeded quota: q")
            await cluster.delete(CLAIM, "ok")
            await used(cluster, "q", {f"h100{suffix}": "0", f"t4{suffix}": "0"})
            await cluster.server.post(path, more)

    play(story)


def test_many_at_once_never_take_more_than_there_is() -> None:
    async def story(cluster: Cluster) -> None:
        async with cluster.running(ResourceQuotaController, ResourceQuotaController):
            await cluster.create(QUOTA, "q", spec={"hard": {"count/configmaps": "7"}})
            await used(cluster, "q", {"count/configmaps": "0"})
            path = "/api/v1/namespaces/default/configmaps"
            answers = await asyncio.gather(
                *(
                    cluster.server.ask("POST", path, {"metadata": {"name": f"c{number}"}})
                    for number in range(30)
                )
            )
            assert sorted(answer.code for answer in answers) == [201] * 7 + [403] * 23
            assert len((await cluster.server.get(path))["items"]) == 7
            for number in range(30):
                if answers[number].code == 201:
                    await cluster.delete("ConfigMap", f"c{number}")
            await used(cluster, "q", {"count/configmaps": "0"})

    play(story)


def test_without_a_controller_a_quota_is_not_in_force() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(QUOTA, "q", spec={"hard": {"pods": "0"}})
        await cluster.server.post(PODS, pod_with("p"))

    play(story)
