"""A node is drained while a PodDisruptionBudget protects its pods: evictions are refused until others are ready."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from allot.api.identities import ObjectKey
from allot.client.client import without_retries
from allot.client.errors import ApiStatusError
from allot.client.resources import PODS
from allot.testing.cluster import ClusterSettings, VirtualTimeCluster
from allot.testing.manifests import a_node_manifest as a_node

DRAIN_SECONDS = 5
"""How long kubectl waits before it tries to evict a pod again."""


@pytest.fixture
def cluster() -> Iterator[VirtualTimeCluster]:
    with VirtualTimeCluster(ClusterSettings()) as running:
        running.apply(a_node("n1"), a_node("n2"))
        yield running


def a_deployment(replicas: int) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        },
    }


def a_budget(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


async def evict(cluster: VirtualTimeCluster, name: str) -> ApiStatusError | None:
    try:
        await without_retries(cluster.client).evict(ObjectKey("default", name))
    except ApiStatusError as error:
        return None if error.is_not_found else error
    return None


async def drain(cluster: VirtualTimeCluster, node: str) -> list[ApiStatusError]:
    """Evict every pod of the node as `kubectl drain` does; the refusals on the way."""
    refusals: list[ApiStatusError] = []
    for _ in range(100):
        pods = [pod for pod in (await cluster.client.list(PODS)).items if pod.node_name == node]
        if not pods:
            return refusals
        for pod in pods:
            refusal = await evict(cluster, pod.metadata.name)
            if refusal is not None:
                refusals.append(refusal)
        await asyncio.sleep(DRAIN_SECONDS)
    raise AssertionError(f"{node} still has pods: {pods}")


def healthy(count: int, allowed: int) -> Any:
    return lambda budget: (
        budget["status"]["currentHealthy"] == count
        and budget["status"]["disruptionsAllowed"] == allowed
    )


@pytest.mark.parametrize("spec", [{"minAvailable": 3}, {"maxUnavailable": "20%"}])
def test_a_drain_ends_and_never_breaks_the_budget(
    cluster: VirtualTimeCluster, spec: dict[str, Any]
) -> None:
    cluster.apply(a_deployment(4), a_budget(**spec))
    budget = cluster.wait_for("PodDisruptionBudget", "web", healthy(4, 1))
    assert budget is not None
    assert budget["status"]["conditions"][0]["reason"] == "SufficientPods"
    cluster.apply({**a_node("n1"), "spec": {"unschedulable": True}})

    refusals = cluster.run(drain(cluster, "n1"))

    assert all(pod["spec"]["nodeName"] == "n2" for pod in cluster.list("Pod"))
    assert refusals, "one pod at a time"
    refusal = refusals[0]
    assert refusal.code == 429
    [cause] = refusal.details["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert "needs 3 healthy pods and has" in cause["message"]
    cluster.wait_for("PodDisruptionBudget", "web", healthy(4, 1))


def test_pods_without_a_controller_are_counted_by_a_number_only(
    cluster: VirtualTimeCluster,
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "alone", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    }
    cluster.apply(pod, a_budget(maxUnavailable=1))
    cluster.wait_for("PodDisruptionBudget", "web", healthy(1, 0))
    cluster.advance(10)
    assert "UnmanagedPods" in {event["reason"] for event in cluster.list("Event")}

    cluster.delete("PodDisruptionBudget", "web")
    cluster.apply(a_budget(minAvailable=0))
    cluster.wait_for("PodDisruptionBudget", "web", healthy(1, 1))


def test_an_empty_selector_protects_every_pod(cluster: VirtualTimeCluster) -> None:
    cluster.apply(a_deployment(1), {**a_budget(), "spec": {"selector": {}, "minAvailable": 1}})
    cluster.wait_for("PodDisruptionBudget", "web", healthy(1, 0))
    [pod] = cluster.list("Pod")

    refusal = cluster.run(evict(cluster, pod["metadata"]["name"]))

    assert refusal is not None
    assert refusal.code == 429


def test_a_job_has_no_scale(cluster: VirtualTimeCluster) -> None:
    template = a_deployment(1)["spec"]["template"]
    template["spec"]["restartPolicy"] = "Never"
    template["metadata"]["annotations"] = {"allot.dev/run-seconds": "1000"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"template": template},
    }
    cluster.apply(job, a_budget(maxUnavailable=1))

    found = cluster.wait_for(
        "PodDisruptionBudget",
        "web",
        lambda budget: (
            budget is not None
            and [c["reason"] for c in budget["status"].get("conditions", ())] == ["SyncFailed"]
        ),
    )

    assert found is not None
    assert "jobs.batch does not implement the scale subresource" in str(found["status"])
