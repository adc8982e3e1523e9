"""`allot.load` and what a snapshot answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import allot
from allot.api.semver import Semver
from allot.testing.builders import a_claim

EXAMPLES = Path(__file__).parents[3] / "examples"
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
status: {allocatable: {cpu: 8, memory: 32Gi, pods: 110}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 2, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {model: {string: A100}, version: {version: 1.2.3}, lanes: {int: 16}, ecc: {bool: true}}
    capacity: {memory: {value: 80Gi}}
  - name: gpu-1
    taints: [{key: broken, effect: NoSchedule}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: old}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gone}]
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: train}
spec: {devices: {requests: [{name: gpu, deviceClassName: gpu.example.com}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: default}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: train}]
  containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
"""


@pytest.fixture
def cluster() -> allot.ClusterSnapshot:
    return allot.loads(CLUSTER)


def claim(name: str = "other", count: int = 1) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu.example.com", "count": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def test_objects(cluster: allot.ClusterSnapshot) -> None:
    assert repr(cluster) == "<ClusterSnapshot 1 node, 2 devices, 1 claim, 1 pod; rules seeds>"
    assert [str(device) for device in cluster.devices] == [
        "gpu.example.com/n1/gpu-0",
        "gpu.example.com/n1/gpu-1",
    ]
    assert cluster.node("n1").labels == {"zone": "a"}
    assert cluster.claim("default/train") is cluster.claim("train")
    assert cluster.pod("train").metadata.name == "train"
    assert set(cluster.device_classes) == {"gpu.example.com"}


def test_devices_are_plain_values(cluster: allot.ClusterSnapshot) -> None:
    first, second = cluster.devices

    assert first.attributes == {
        "ecc": True,
        "lanes": 16,
        "model": "A100",
        "version": Semver.parse("1.2.3"),
    }
    assert str(first.capacity["memory"]) == "80Gi"
    assert second.taints == ("broken:NoSchedule",)
    assert first.is_free


def test_allocation(cluster: allot.ClusterSnapshot) -> None:
    allocation = cluster.node("n1").allocate("train")

    assert allocation
    assert (allocation.node, allocation.claims, allocation.reason, allocation.proposals) == (
        "n1",
        ("default/train",),
        "",
        (),
    )
    assert [(each.request, each.name) for each in allocation.devices] == [("gpu", "gpu-0")]
    assert repr(allocation) == (
        "<Allocation of default/train on n1: gpu → gpu.example.com/n1/gpu-0>"
    )
    assert str(allocation) == ("node n1: default/train fits\n  gpu: gpu.example.com/n1/gpu-0")
    assert "gpu-0" in allocation._repr_html_()


def test_claims_fit_together_or_not_at_all(cluster: allot.ClusterSnapshot) -> None:
    refused = cluster.node("n1").allocate("train", claim())

    assert not refused
    assert refused.devices == ()
    assert refused.to_dict() == {}
    assert "taint broken:NoSchedule" in str(refused)
    assert any("tolerate the taint" in change for change in refused.proposals)


def test_assumed_allocation_holds_devices(cluster: allot.ClusterSnapshot) -> None:
    after = cluster.assume(cluster.node("n1").allocate("train"))

    assert after.devices[0].holders == ("default/train",)
    assert repr(after.devices[0]) == "<Device gpu.example.com/n1/gpu-0, held by default/train>"
    assert not after.node("n1").allocate(claim())
    assert after.node("n1").allocate("train"), "its own devices are free for it"
    assert cluster.devices[0].is_free, "the snapshot before is what it was"
    with pytest.raises(ValueError, match="cannot be assumed"):
        after.assume(after.node("n1").allocate(claim()))


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(claim(), id="manifest"),
        pytest.param(a_claim(), id="object"),
        pytest.param(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": "t"},
                "spec": {"spec": claim()["spec"]},
            },
            id="template",
        ),
    ],
)
def test_claims_that_are_not_in_the_snapshot(cluster: allot.ClusterSnapshot, what: Any) -> None:
    assert cluster.node("n1").allocate(what)


def test_wrong_arguments(cluster: allot.ClusterSnapshot) -> None:
    with pytest.raises(TypeError, match="at least one claim"):
        cluster.node("n1").allocate()
    with pytest.raises(TypeError, match="is needed, not Pod"):
        cluster.node("n1").allocate({"apiVersion": "v1", "kind": "Pod"})
    with pytest.raises(TypeError, match="at least one file"):
        allot.load()
    with pytest.raises(ValueError, match="expected pod/NAME or claim/NAME"):
        cluster.explain("node/n1")
    with pytest.raises(ValueError, match=r"available: seeds, v1\.38"):
        allot.loads(CLUSTER, rules="v2")
    with pytest.raises(allot.FeatureGateError, match="unknown feature gate 'X'"):
        allot.loads(CLUSTER, feature_gates={"X": True})


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda cluster: cluster.node("n9"), "no node n9 in this snapshot; available: n1"),
        (lambda cluster: cluster.claim("trian"), "did you mean default/train?"),
        (lambda cluster: cluster.claim("x/train"), "no ResourceClaim x/train"),
        (lambda cluster: cluster.explain("pod/x/y"), "no pod x/y in this snapshot; available"),
        (lambda cluster: cluster.without("Node", "n9"), "no Node n9"),
        (lambda cluster: cluster.without("Nod", "n9"), "no kind Nod; did you mean Node?"),
        (lambda cluster: cluster.without("Pod", "train").pod("train"), "has no Pod at all"),
    ],
)
def test_names_that_are_not_there(cluster: allot.ClusterSnapshot, ask: Any, message: str) -> None:
    with pytest.raises(allot.NotFoundError) as error:
        ask(cluster)

    assert message in str(error.value)
    assert isinstance(error.value, LookupError | allot.AllotError)


def test_explanations(cluster: allot.ClusterSnapshot) -> None:
    fits = cluster.explain("pod/train")

    assert (fits.state, fits.node, fits.object) == ("Fits", "n1", "pod/default/train")
    assert repr(fits) == "<Explanation of pod/default/train: Fits>"
    assert fits.to_dict()["state"] == "Fits"
    assert cluster.explain(cluster.pod("train")).state == "Fits"
    assert cluster.explain(cluster.claim("train")).object == "claim/default/train"
    full = cluster.with_objects(claim("train", count=3)).explain("pod/default/train")
    assert full.state == "DoesNotFit"
    assert full.reasons["n1"][0] == "cannot allocate all claims"
    assert full.proposals
    assert str(full).startswith(full.verdict)
    assert full._repr_html_().startswith("<pre>Pod default/train is pending")


def test_pod_that_does_not_exist_yet(cluster: allot.ClusterSnapshot) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "new"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }

    assert cluster.explain(pod).node == "n1"
    with pytest.raises(ValueError, match="manifest of a Pod or a ResourceClaim"):
        cluster.explain({"kind": "Node", "metadata": {"name": "n"}})


def test_gates_and_rules(cluster: allot.ClusterSnapshot) -> None:
    other = cluster.with_gates({"DRADeviceTaints": False, "DRADeviceTaintRules": False})

    assert "DRADeviceTaints" not in other.feature_gates
    assert cluster.with_gates(rules="v1.38").rules == "v1.38"
    assert allot.loads(CLUSTER, rules="v1.38").rules == "v1.38"
    assert cluster.rules == "seeds"


def test_load_files(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(CLUSTER)

    assert len(allot.load(tmp_path / "b.yaml").nodes) == 1
    assert len(allot.load(str(tmp_path / "*.yaml"), tmp_path).devices) == 2
    with pytest.raises(allot.ManifestError, match="no file matches this pattern"):
        allot.load(str(tmp_path / "*.yml"))
    (tmp_path / "c.yaml").write_text("a: 1\nb: [")
    with pytest.raises(allot.ManifestError) as error:
        allot.load(tmp_path / "c.yaml")
    assert error.value.source.endswith("c.yaml")
    assert error.value.line == 3
    with pytest.raises(allot.ManifestError, match=r"ResourceClaim/c: "):
        allot.loads(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: 1"
        )


def test_nodes_that_only_slices_name() -> None:
    cluster = allot.load(EXAMPLES / "base" / "devices.yaml", EXAMPLES / "base" / "claims.yaml")

    assert [node.name for node in cluster.nodes] == ["server-1", "server-2"]
    assert cluster.node("server-1").allocate("shared-gpu")


def test_cluster_that_cannot_be_reached(tmp_path: Path) -> None:
    with pytest.raises(allot.ClusterError):
        allot.snapshot(tmp_path / "no-kubeconfig")

    async def in_a_loop() -> None:  # as in a notebook
        allot.snapshot(tmp_path / "no-kubeconfig")

    with pytest.raises(allot.ClusterError):
        asyncio.run(in_a_loop())
