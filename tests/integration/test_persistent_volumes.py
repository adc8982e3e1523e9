"""Claims for volumes are bound, provisioned, released and lost as by Kubernetes' persistentvolume-binder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from allot.api.identities import ObjectKey
from allot.client.options import PatchType
from allot.client.resources import PERSISTENT_VOLUMES
from allot.testing.cluster import ClusterSettings, VirtualTimeCluster
from allot.testing.manifests import a_node_manifest, a_pod_manifest

PVC, PV, CLASS = "PersistentVolumeClaim", "PersistentVolume", "StorageClass"


@pytest.fixture
def cluster() -> Iterator[VirtualTimeCluster]:
    with VirtualTimeCluster(ClusterSettings()) as running:
        running.apply(a_node_manifest("n1"), a_node_manifest("n2"))
        yield running


def a_volume(
    name: str, size: str = "1Gi", class_name: str = "manual", **spec: Any
) -> dict[str, Any]:
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_name,
        "hostPath": {"path": f"/data/{name}"},
        **spec,
    }
    kept = {key: value for key, value in spec.items() if value is not None}
    return {"apiVersion": "v1", "kind": PV, "metadata": {"name": name}, "spec": kept}


def a_claim(name: str = "c", class_name: str | None = "manual", **spec: Any) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": class_name,
        **spec,
    }
    kept = {key: value for key, value in spec.items() if value is not None}
    return {"apiVersion": "v1", "kind": PVC, "metadata": {"name": name}, "spec": kept}


def a_class(name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **fields.pop("metadata", {})}
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": CLASS, "metadata": metadata}
    return {**kind, "provisioner": "disk.example.com", **fields}


def phase(cluster: VirtualTimeCluster, kind: str, name: str) -> str:
    found = cluster.get(kind, name)
    return "" if found is None else found["status"]["phase"]


def volume_of(cluster: VirtualTimeCluster, name: str = "c") -> str:
    claim = cluster.get(PVC, name)
    assert claim is not None
    return str(claim["spec"].get("volumeName", ""))


def reasons(cluster: VirtualTimeCluster, name: str = "c") -> list[str]:
    found = cluster.list("Event")
    return [each["reason"] for each in found if each["involvedObject"]["name"] == name]


def test_a_claim_gets_the_smallest_volume_that_fits(cluster: VirtualTimeCluster) -> None:
    cluster.apply(a_volume("a", "9Gi"), a_volume("b", "2Gi"), a_volume("d", "500Mi"))
    cluster.advance(1)
    cluster.apply(a_claim())
    cluster.advance(1)

    assert volume_of(cluster) == "b"
    assert phase(cluster, PVC, "c") == phase(cluster, PV, "b") == "Bound"
    assert phase(cluster, PV, "a") == "Available"
    claim = cluster.get(PVC, "c")
    assert claim is not None
    assert claim["status"]["capacity"] == {"storage": "2Gi"}


def test_two_claims_never_get_the_same_volume(cluster: VirtualTimeCluster) -> None:
    cluster.apply(*(a_claim(f"c{n}") for n in range(4)))
    cluster.apply(*(a_volume(f"v{n}") for n in range(3)))
    cluster.advance(5)

    got = sorted(volume_of(cluster, f"c{n}") for n in range(4))
    assert got == ["", "v0", "v1", "v2"]


@pytest.mark.parametrize(
    ("claim", "volume"),
    [
        pytest.param(a_claim(volumeName="a"), "a", id="named"),
        pytest.param(a_claim(selector={"matchLabels": {"x": "y"}}), "", id="selector"),
        pytest.param(a_claim(volumeMode="Block"), "", id="mode"),
        pytest.param(a_claim(accessModes=["ReadWriteMany"]), "", id="access-modes"),
        pytest.param(a_claim(class_name="other"), "", id="class"),
    ],
)
def test_matching(cluster: VirtualTimeCluster, claim: dict[str, Any], volume: str) -> None:
    cluster.apply(a_volume("a", "9Gi"), a_volume("b"), claim)
    cluster.advance(5)

    assert volume_of(cluster) == volume


def test_a_volume_that_is_meant_for_a_claim(cluster: VirtualTimeCluster) -> None:
    meant = {"namespace": "default", "name": "c"}
    cluster.apply(a_volume("a"), a_volume("b", "9Gi", claimRef=meant), a_claim())
    cluster.advance(5)
    assert volume_of(cluster) == "b"

    cluster.apply(a_claim("other", resources={"requests": {"storage": "5Gi"}}))
    cluster.advance(5)
    assert volume_of(cluster, "other") == ""


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        pytest.param(a_claim(class_name=""), "FailedBinding", id="no-class"),
        pytest.param(a_claim(class_name="missing"), "ProvisioningFailed", id="missing-class"),
        pytest.param(a_claim(class_name="fast"), "ExternalProvisioning", id="provisioner"),
        pytest.param(a_claim(class_name="none"), "ProvisioningFailed", id="no-provisioner"),
        pytest.param(a_claim(class_name="late"), "WaitForFirstConsumer", id="late"),
        pytest.param(a_claim(volumeName="v", class_name="x"), "VolumeMismatch", id="mismatch"),
    ],
)
def test_why_a_claim_waits(cluster: VirtualTimeCluster, claim: dict[str, Any], reason: str) -> None:
    cluster.apply(
        a_volume("v"),
        a_class("fast"),
        a_class("none", provisioner="kubernetes.io/no-provisioner"),
        a_class("late", volumeBindingMode="WaitForFirstConsumer"),
        claim,
    )
    cluster.advance(5)

    assert phase(cluster, PVC, "c") == "Pending"
    assert set(reasons(cluster)) == {reason}


def test_a_provisioner_is_asked(cluster: VirtualTimeCluster) -> None:
    cluster.apply(a_class("fast"), a_claim(class_name="fast"))
    cluster.advance(1)
    claim = cluster.get(PVC, "c")
    assert claim is not None
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] == (
        "disk.example.com"
    )

    uid = claim["metadata"]["uid"]
    reference = {"namespace": "default", "name": "c", "uid": uid}
    cluster.apply(a_volume("made", class_name="fast", claimRef=reference))
    cluster.advance(1)
    assert phase(cluster, PVC, "c") == "Bound"


def test_a_volume_is_chosen_with_the_node_of_the_first_pod(cluster: VirtualTimeCluster) -> None:
    on_n2 = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_n2]}]}}
    late = a_class(
        "late",
        provisioner="kubernetes.io/no-provisioner",
        volumeBindingMode="WaitForFirstConsumer",
    )
    cluster.apply(late, a_volume("v", class_name="late", nodeAffinity=affinity))
    cluster.apply(a_claim(class_name="late"))
    cluster.advance(5)
    assert phase(cluster, PVC, "c") == "Pending"

    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    cluster.apply(a_pod_manifest("p", claims=(), volumes=[volume]))
    cluster.advance(30)

    pod = cluster.get("Pod", "p")
    assert pod is not None
    assert (pod["spec"]["nodeName"], pod["status"]["phase"]) == ("n2", "Running")
    assert volume_of(cluster) == "v"


@pytest.mark.parametrize(
    ("spec", "after"),
    [
        pytest.param({}, "Released", id="retain"),
        pytest.param({"persistentVolumeReclaimPolicy": "Delete"}, "Failed", id="not-deletable"),
        pytest.param(
            {"persistentVolumeReclaimPolicy": "Delete", "hostPath": {"path": "/tmp/x"}},  # noqa: S108
            "",
            id="delete",
        ),
        pytest.param(
            {
                "persistentVolumeReclaimPolicy": "Delete",
                "hostPath": None,
                "csi": {"driver": "disk.example.com", "volumeHandle": "h"},
            },
            "Released",
            id="driver-deletes",
        ),
        pytest.param({"persistentVolumeReclaimPolicy": "Recycle"}, "Available", id="recycle"),
    ],
)
def test_the_volume_of_a_deleted_claim(
    cluster: VirtualTimeCluster, spec: dict[str, Any], after: str
) -> None:
    cluster.apply(a_volume("v", **spec), a_claim())
    cluster.advance(5)
    cluster.delete(PVC, "c")
    cluster.advance(5)

    assert phase(cluster, PV, "v") == after


def test_a_claim_whose_volume_is_gone(cluster: VirtualTimeCluster) -> None:
    cluster.apply(a_volume("v"), a_claim())
    cluster.advance(5)
    cluster.delete(PV, "v")
    cluster.advance(5)
    assert phase(cluster, PV, "v") == "Bound", "protected"

    gone = a_volume("v")
    gone["metadata"]["finalizers"] = []
    cluster.run(remove_finalizers(cluster))
    cluster.advance(5)

    assert phase(cluster, PVC, "c") == "Lost"
    assert reasons(cluster)[-1] == "ClaimLost"


async def remove_finalizers(cluster: VirtualTimeCluster) -> None:
    patch = {"metadata": {"finalizers": None}}
    await cluster.client.patch(PERSISTENT_VOLUMES, ObjectKey("", "v"), patch, PatchType.MERGE)


@pytest.mark.parametrize("class_first", [True, False])
def test_the_default_class(cluster: VirtualTimeCluster, class_first: bool) -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    default = a_class("fast", metadata={"annotations": annotations})
    claims = [a_claim(class_name=None), a_claim("none", class_name="")]
    for each in [[default], claims] if class_first else [claims, [default]]:
        cluster.apply(*each)
        cluster.advance(5)

    wanted, other = cluster.get(PVC, "c"), cluster.get(PVC, "none")
    assert wanted is not None
    assert other is not None
    assert wanted["spec"]["storageClassName"] == "fast"
    assert other["spec"]["storageClassName"] == ""


def test_ephemeral_volumes(cluster: VirtualTimeCluster) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": a_claim()["spec"]}
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": template}}
    cluster.apply(a_volume("big"), a_pod_manifest("p", claims=(), volumes=[volume]))
    cluster.advance(30)

    pod, claim = cluster.get("Pod", "p"), cluster.get(PVC, "p-v")
    assert pod is not None
    assert claim is not None
    assert pod["status"]["phase"] == "Running"
    assert claim["metadata"]["labels"] == {"a": "b"}

    cluster.delete("Pod", "p")
    cluster.advance(60)
    assert cluster.get(PVC, "p-v") is None
    assert phase(cluster, PV, "big") == "Released"


def test_unused_claims(cluster: VirtualTimeCluster) -> None:
    def unused() -> str:
        claim = cluster.get(PVC, "c")
        assert claim is not None
        (condition,) = claim["status"]["conditions"]
        assert condition["type"] == "Unused"
        return str(condition["status"])

    cluster.apply(a_volume("v"), a_claim())
    cluster.advance(5)
    assert unused() == "True"

    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    cluster.apply(a_pod_manifest("p", claims=(), volumes=[volume]))
    cluster.advance(5)
    assert unused() == "False"

    cluster.delete("Pod", "p")
    cluster.advance(60)
    assert unused() == "True"
