"""Workloads in a whole cluster, as Kubernetes leaves them: replication controllers, generations, events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from allot.testing.cluster import ClusterSettings, VirtualTimeCluster
from allot.testing.manifests import a_node_manifest


@pytest.fixture(scope="module")
def cluster() -> Iterator[VirtualTimeCluster]:
    with VirtualTimeCluster(ClusterSettings()) as running:
        running.apply(a_node_manifest("n1"))
        yield running


def a_workload(kind: str, api_version: str, name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    selector: dict[str, Any] = (
        labels if kind == "ReplicationController" else {"matchLabels": labels}
    )
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": selector,
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        },
    }


def events_about(cluster: VirtualTimeCluster, kind: str) -> list[dict[str, Any]]:
    cluster.advance(1)
    return [event for event in cluster.list("events.v1") if event["involvedObject"]["kind"] == kind]


def test_a_replication_controller_keeps_its_pods(cluster: VirtualTimeCluster) -> None:
    cluster.apply(a_workload("ReplicationController", "v1", "old", 2))
    cluster.wait_for(
        "ReplicationController",
        "old",
        lambda rc: rc is not None and rc["status"].get("readyReplicas") == 2,
    )
    [first, _] = cluster.list("Pod", selector="app=old")

    cluster.delete("Pod", first["metadata"]["name"])
    cluster.advance(60)

    pods = cluster.list("Pod", selector="app=old")
    assert len(pods) == 2
    assert first["metadata"]["name"] not in {pod["metadata"]["name"] for pod in pods}
    [event, *_] = events_about(cluster, "ReplicationController")
    assert event["source"] == {"component": "replication-controller"}

    cluster.apply(a_workload("ReplicationController", "v1", "old", 0))
    cluster.advance(60)
    assert not cluster.list("Pod", selector="app=old")


def test_a_deployment_that_was_only_created_has_its_first_generation(
    cluster: VirtualTimeCluster,
) -> None:
    cluster.apply(a_workload("Deployment", "apps/v1", "web", 1))

    found = cluster.wait_for(
        "Deployment",
        "web",
        lambda web: web is not None and web["status"].get("availableReplicas") == 1,
    )

    assert found is not None
    assert found["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}
    assert (found["metadata"]["generation"], found["status"]["observedGeneration"]) == (1, 1)


def test_events_of_a_pod(cluster: VirtualTimeCluster) -> None:
    """The scheduler's have a time, those of kubelets and controllers first and last timestamps."""
    cluster.apply(a_workload("Deployment", "apps/v1", "told", 1))
    cluster.wait_for(
        "Deployment", "told", lambda d: d is not None and d["status"].get("availableReplicas") == 1
    )
    [pod] = cluster.list("Pod", selector="app=told")
    cluster.delete("Pod", pod["metadata"]["name"])
    cluster.advance(60)

    events = [
        event
        for event in events_about(cluster, "Pod")
        if event["involvedObject"]["name"] == pod["metadata"]["name"]
    ]

    by_reason = {event["reason"]: event for event in events}
    assert set(by_reason) == {"Scheduled", "Pulled", "Created", "Started", "Killing"}
    assert "lastTimestamp" not in by_reason["Scheduled"] or (
        by_reason["Scheduled"]["lastTimestamp"] is None
    )
    assert by_reason["Scheduled"]["eventTime"]
    for reason in ("Pulled", "Created", "Started", "Killing"):
        event = by_reason[reason]
        assert event["source"] == {"component": "kubelet", "host": "n1"}
        assert event["involvedObject"]["fieldPath"] == "spec.containers{c}"
        assert event["count"] == 1
        assert event["firstTimestamp"] <= event["lastTimestamp"]
