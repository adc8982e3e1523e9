"""Prioritized alternatives (KEP-4816) in a whole cluster, in virtual time."""

from __future__ import annotations

from typing import Any

from allot.testing.cluster import ClusterSettings, VirtualTimeCluster
from allot.testing.manifests import a_claim_manifest, a_class_manifest, a_pod_manifest

SETTINGS = ClusterSettings(hardware=["gpu-server=1"])


def prioritized_claim(name: str, *classes: str) -> dict[str, Any]:
    """A claim for a device of the first of these classes that can be had."""
    alternatives = [
        {"name": f"a{index}", "deviceClassName": class_} for index, class_ in enumerate(classes)
    ]
    return a_claim_manifest({"name": "gpu", "firstAvailable": alternatives}, name=name)


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
        cluster.apply(
            prioritized_claim("job", "big.example.com", "gpu.example.com"),
            a_pod_manifest("job", claims={"gpu": "job"}),
        )
        cluster.wait_for_phase("job", "Running")
        cluster.advance(10)

        assert got(cluster.get("ResourceClaim", "job")) == ["gpu/a1"]
        (note,) = notes(cluster, "SkippedAlternative")
        assert note.startswith("device class big.example.com does not exist")
        assert "kube-scheduler v1.38 would leave the pod pending" in note


def test_a_pod_without_any_class_waits_for_one() -> None:
    with VirtualTimeCluster(SETTINGS) as cluster:
        cluster.apply(
            prioritized_claim("job", "big.example.com", "huge.example.com"),
            a_pod_manifest("job", claims={"gpu": "job"}),
        )
        pod = cluster.wait_for(
            "Pod", "job", lambda found: found is not None and found["status"].get("conditions")
        )
        assert pod is not None
        (condition,) = pod["status"]["conditions"]
        assert "big.example.com, huge.example.com" in condition["message"]

        cluster.apply(a_class_manifest("huge.example.com", "device.driver == 'gpu.example.com'"))
        cluster.wait_for_phase("job", "Running")

        assert got(cluster.get("ResourceClaim", "job")) == ["gpu/a1"]
