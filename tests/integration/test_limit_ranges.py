"""LimitRanges and quotas together: a namespace in which containers need not say what they use.

The expected answers are those of Kubernetes v1.38.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from allot.client.apply import RefusedError
from allot.testing.cluster import ClusterSettings, VirtualTimeCluster
from allot.testing.manifests import a_node_manifest, a_pod_manifest

LIMITS: list[dict[str, Any]] = [
    {
        "type": "Container",
        "min": {"cpu": "100m"},
        "max": {"cpu": "2", "memory": "1Gi"},
        "default": {"cpu": "500m"},
        "defaultRequest": {"cpu": "200m"},
        "maxLimitRequestRatio": {"cpu": "4"},
    },
    {
        "type": "Pod",
        "max": {"cpu": "3"},
        "min": {"memory": "1Mi"},
        "maxLimitRequestRatio": {"memory": "2"},
    },
    {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}},
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[VirtualTimeCluster]:
    with VirtualTimeCluster(ClusterSettings()) as running:
        running.apply(a_node_manifest("n1"))
        metadata = {"name": "limits", "namespace": "default"}
        running.apply(
            {
                "apiVersion": "v1",
                "kind": "LimitRange",
                "metadata": metadata,
                "spec": {"limits": LIMITS},
            }
        )
        yield running


def a_container(name: str = "x", **resources: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": resources}


def pod_of(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return a_pod_manifest(name, containers=list(containers), **spec)


def refusal(cluster: VirtualTimeCluster, manifest: dict[str, Any]) -> str:
    with pytest.raises(RefusedError) as refused:
        cluster.apply(manifest)
    return str(refused.value)


def test_defaults(cluster: VirtualTimeCluster) -> None:
    small = {"requests": {"cpu": "300m", "memory": "1Mi"}, "limits": {"memory": "1Mi"}}

    [pod] = cluster.apply(pod_of("defaults", a_container(), a_container("y", **small)))

    first, second = (container["resources"] for container in pod["spec"]["containers"])
    assert first == {
        "limits": {"cpu": "500m", "memory": "1Gi"},
        "requests": {"cpu": "200m", "memory": "1Gi"},
    }
    assert second["limits"] == {"cpu": "500m", "memory": "1Mi"}
    assert second["requests"] == {"cpu": "300m", "memory": "1Mi"}
    assert pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container x;"
        " cpu, memory limit for container x; cpu limit for container y"
    )
    assert pod["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("containers", "why"),
    [
        pytest.param(
            [a_container(limits={"cpu": "3", "memory": "2Gi"})],
            "[maximum cpu usage per Container is 2, but limit is 3,"
            " maximum memory usage per Container is 1Gi, but limit is 2Gi]",
            id="maximum",
        ),
        pytest.param(
            [a_container(requests={"cpu": "50m"})],
            "[minimum cpu usage per Container is 100m, but request is 50m,"
            " cpu max limit to request ratio per Container is 4, but provided ratio is 10.000000]",
            id="minimum",
        ),
        pytest.param(
            [a_container(requests={"memory": "10Mi"}, limits={"memory": "512Mi"})],
            "memory max limit to request ratio per Pod is 2, but provided ratio is 51.200000",
            id="ratio",
        ),
        pytest.param(
            [a_container(limits={"cpu": "2"}), a_container("y", limits={"cpu": "2"})],
            "maximum cpu usage per Pod is 3, but limit is 4",
            id="sum",
        ),
    ],
)
def test_constraints(
    cluster: VirtualTimeCluster, containers: list[dict[str, Any]], why: str
) -> None:
    assert refusal(cluster, pod_of("bad", *containers)) == f'pods "bad" is forbidden: {why}'


def test_a_default_limit_below_the_request_is_invalid(cluster: VirtualTimeCluster) -> None:
    assert "must be less than or equal to cpu limit of 500m" in refusal(
        cluster, pod_of("bad", a_container(requests={"cpu": "1"}))
    )


@pytest.mark.parametrize(
    ("size", "why"),
    [
        ("512Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 512Mi"),
        ("4Gi", "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 4Gi"),
    ],
)
def test_volume_claims(cluster: VirtualTimeCluster, size: str, why: str) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "v"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        },
    }

    assert refusal(cluster, claim) == f'persistentvolumeclaims "v" is forbidden: {why}'


def test_a_quota_counts_the_defaults(cluster: VirtualTimeCluster) -> None:
    """Without the defaults the quota would refuse a pod that does not say what it uses."""
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "quota"},
            "spec": {"hard": {"limits.cpu": "2", "requests.memory": "3Gi"}},
        }
    )
    cluster.wait_for(
        "ResourceQuota", "quota", lambda quota: quota is not None and quota["status"].get("hard")
    )

    cluster.apply(pod_of("counted", a_container()))

    quota = cluster.get("ResourceQuota", "quota")
    assert quota is not None
    assert quota["status"]["used"]["limits.cpu"] in ("500m", "1500m"), (
        "with the pod of another test"
    )
    assert "exceeded quota" in refusal(
        cluster, pod_of("more", a_container(limits={"cpu": "2", "memory": "1Mi"}))
    )
    cluster.delete("ResourceQuota", "quota")


# --- other admission of pods ---


def test_unknown_service_accounts_and_runtime_classes(cluster: VirtualTimeCluster) -> None:
    assert refusal(cluster, pod_of("p", a_container(), serviceAccountName="nosuch")) == (
        'pods "p" is forbidden: error looking up service account default/nosuch:'
        ' serviceaccount "nosuch" not found'
    )
    assert refusal(cluster, pod_of("p", a_container(), runtimeClassName="nosuch")) == (
        'pods "p" is forbidden: pod rejected: RuntimeClass "nosuch" not found'
    )


def test_a_runtime_class_adds_overhead_and_placement(cluster: VirtualTimeCluster) -> None:
    cluster.apply(
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "vm"},
            "handler": "vm",
            "overhead": {"podFixed": {"memory": "64Mi"}},
            "scheduling": {
                "nodeSelector": {"kvm": "yes"},
                "tolerations": [{"key": "kvm", "operator": "Exists"}],
            },
        }
    )

    [pod] = cluster.apply(pod_of("vm", a_container(), runtimeClassName="vm"))

    assert pod["spec"]["overhead"] == {"memory": "64Mi"}
    assert pod["spec"]["nodeSelector"] == {"kvm": "yes"}
    assert {"key": "kvm", "operator": "Exists"} in pod["spec"]["tolerations"]
    conflict = pod_of("p", a_container(), runtimeClassName="vm", nodeSelector={"kvm": "no"})
    assert "conflict: runtimeClass.scheduling.nodeSelector[kvm] = yes" in refusal(cluster, conflict)


def test_the_priority_classes_of_the_system(cluster: VirtualTimeCluster) -> None:
    found = {item["metadata"]["name"]: item["value"] for item in cluster.list("PriorityClass")}
    assert found == {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}

    with pytest.raises(Exception, match="system priority class and cannot be deleted"):
        cluster.delete("PriorityClass", "system-node-critical")
