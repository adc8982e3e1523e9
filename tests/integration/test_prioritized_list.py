"""Prioritized alternatives (KEP-4816) in a whole cluster, in virtual time."""

from __future__ import annotations

from typing import Any

from allot.testing.cluster import ClusterSettings, VirtualTimeCluster

SETTINGS = ClusterSettings(hardware=["gpu-server=1"])


def a_pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "m", "image": "i"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
        },
    }


def a_claim(name: str, *classes: str) -> dict[str, Any]:
    """A claim for a device of the first of these classes that can be had."""
    alternatives = [
        {"name": f"a{index}", "deviceClassName": class_} for index, class_ in enumerate(classes)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "firstAvailable": alternatives}]}},
    }


def a_class(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
    }


def got(claim: dict[str, Any] | None) -> list[str]:
    assert claim is not None
    results = claim["status"]["allocation"]["devices"]["results"]
    return [result["request"] for result in results]


def notes(cluster: VirtualTimeCluster, reason: str) -> list[str]:
    return [
        str(event.get("note") or event.get("message"))
        for event in cluster.list("Event")
        if event["reason"] == reason
    ]


def test_one_manifest_for_clusters_with_different_classes() -> None:
    with VirtualTimeCluster(SETTINGS) as cluster:
        cluster.apply(a_claim("job", "big.example.com", "gpu.example.com"), a_pod("job"))
        cluster.wait_for_phase("job", "Running")
        cluster.advance(10)

        assert got(cluster.get("ResourceClaim", "job")) == ["gpu/a1"]
        (note,) = notes(cluster, "SkippedAlternative")
        assert note.startswith("device class big.example.com does not exist")
        assert "kube-scheduler v1.38 would leave the pod pending" in note


def test_a_pod_without_any_class_waits_for_one() -> None:
    with VirtualTimeCluster(SETTINGS) as cluster:
        cluster.apply(a_claim("job", "big.example.com", "huge.example.com"), a_pod("job"))
        pod = cluster.wait_for(
            "Pod", "job", lambda found: found is not None and found["status"].get("conditions")
        )
        assert pod is not None
        (condition,) = pod["status"]["conditions"]
        assert "big.example.com, huge.example.com" in condition["message"]

        cluster.apply(a_class("huge.example.com"))
        cluster.wait_for_phase("job", "Running")

        assert got(cluster.get("ResourceClaim", "job")) == ["gpu/a1"]
