"""Deleted volumes, and claims for volumes, stay while they are used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from allot.testing.cluster import ClusterSettings, VirtualTimeCluster
from allot.testing.manifests import a_node_manifest, a_pod_manifest

PVC, PV = "PersistentVolumeClaim", "PersistentVolume"
STORAGE: dict[str, Any] = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "storageClassName": "manual",
}


@pytest.fixture
def cluster() -> Iterator[VirtualTimeCluster]:
    with VirtualTimeCluster(ClusterSettings()) as running:
        running.apply(a_node_manifest("n1"))
        yield running


def a_volume_claim(name: str = "data", **metadata: Any) -> dict[str, Any]:
    metadata = {"name": name, **metadata}
    return {"apiVersion": "v1", "kind": PVC, "metadata": metadata, "spec": STORAGE}


def a_volume() -> dict[str, Any]:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "manual",
        "hostPath": {"path": "/data"},
    }
    return {"apiVersion": "v1", "kind": PV, "metadata": {"name": "disk"}, "spec": spec}


def a_user(name: str = "user", node: str = "n1", **volume: Any) -> dict[str, Any]:
    source = volume or {"persistentVolumeClaim": {"claimName": "data"}}
    spec = {"volumes": [{"name": "v", **source}], "nodeName": node or None}
    return a_pod_manifest(name, claims=(), **{key: value for key, value in spec.items() if value})


def is_gone(cluster: VirtualTimeCluster, kind: str, name: str) -> bool:
    return all(found["metadata"]["name"] != name for found in cluster.list(kind))


def test_an_unused_claim_goes_at_once(cluster: VirtualTimeCluster) -> None:
    (created,) = cluster.apply(a_volume_claim())
    assert created["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]

    cluster.delete(PVC, "data")
    cluster.advance(1)

    assert is_gone(cluster, PVC, "data")


def test_a_claim_stays_until_the_last_pod_is_gone(cluster: VirtualTimeCluster) -> None:
    cluster.apply(a_volume_claim(), a_user("first"), a_user("second"))

    cluster.delete(PVC, "data")
    for pod in ("first", "second"):
        cluster.advance(60)
        claim = cluster.get(PVC, "data")
        assert claim is not None
        assert claim["metadata"]["deletionTimestamp"]
        cluster.delete("Pod", pod)

    cluster.advance(60)
    assert is_gone(cluster, PVC, "data")


def test_a_pod_without_a_node_does_not_use_it(cluster: VirtualTimeCluster) -> None:
    cluster.apply(a_volume_claim(), a_user(node=""))

    cluster.delete(PVC, "data")
    cluster.advance(1)

    assert is_gone(cluster, PVC, "data")


@pytest.mark.parametrize("is_own", [True, False])
def test_ephemeral_volumes(cluster: VirtualTimeCluster, is_own: bool) -> None:
    """Only the pod's own claim is used, and not another one of the same name."""
    template = {"volumeClaimTemplate": {"spec": STORAGE}}
    if not is_own:
        cluster.apply(a_volume_claim("user-v"))
    cluster.apply(a_user(ephemeral=template))
    cluster.advance(1)

    cluster.delete(PVC, "user-v")
    cluster.advance(1)

    found = cluster.get(PVC, "user-v")
    assert found is not None, "it stays, or the pod gets one of its own"
    assert ("deletionTimestamp" in found["metadata"]) == is_own


@pytest.mark.parametrize("is_bound", [True, False])
def test_a_bound_volume_stays(cluster: VirtualTimeCluster, is_bound: bool) -> None:
    (created,) = cluster.apply(a_volume())
    assert created["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    if is_bound:
        cluster.apply(a_volume_claim())
    cluster.advance(1)

    cluster.delete(PV, "disk")
    cluster.advance(1)
    assert is_gone(cluster, PV, "disk") == (not is_bound)

    if is_bound:
        cluster.delete(PVC, "data")
        cluster.advance(1)
        assert is_gone(cluster, PV, "disk")
