"""The control plane that tests of others use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kubernetes import client as official
from kubernetes import config

from allot.client.errors import ApiStatusError
from allot.features import DERIVED_ATTRIBUTES
from allot.testing.cluster import (
    AllotCluster,
    ClusterSettings,
    RealTimeCluster,
    VirtualTimeCluster,
)

CLAIM_TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: gpu.example.com}
"""
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: p
  annotations: {allot.dev/run-seconds: "600"}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: example.com/train
    resources: {claims: [{name: gpu}]}
  resourceClaims:
  - {name: gpu, resourceClaimTemplateName: one-gpu}
"""


@pytest.mark.allot_cluster(hardware=["gpu-server"], virtual_time=True)
def test_ten_minutes_in_virtual_time(allot_cluster: AllotCluster) -> None:
    assert isinstance(allot_cluster, VirtualTimeCluster)
    allot_cluster.apply(CLAIM_TEMPLATE, POD)

    running = allot_cluster.wait_for_phase("p", "Running")
    claims = allot_cluster.list("ResourceClaim", "default")
    allot_cluster.advance(500)
    before = allot_cluster.get("Pod", "p")
    allot_cluster.wait_for_phase("p", "Succeeded", seconds=200)

    assert running["spec"]["nodeName"].startswith("gpu-server")
    assert [len(each["status"]["allocation"]["devices"]["results"]) for each in claims] == [1]
    assert before is not None
    assert before["status"]["phase"] == "Running"
    allot_cluster.wait_for("Pod", "p", lambda pod: pod is not None)
    released = allot_cluster.wait_for(
        "resourceclaims", claims[0]["metadata"]["name"], lambda claim: claim is None
    )
    assert released is None


@pytest.mark.allot_cluster(hardware=["gpu-server"])
def test_real_time_with_another_client(allot_cluster: AllotCluster) -> None:
    assert isinstance(allot_cluster, RealTimeCluster)
    allot_cluster.apply(CLAIM_TEMPLATE)
    with config.new_client_from_config(str(allot_cluster.kubeconfig)) as api:  # type: ignore[no-untyped-call]
        core = official.CoreV1Api(api)
        pod = official.V1Pod(
            metadata=official.V1ObjectMeta(name="q"),
            spec=official.V1PodSpec(containers=[official.V1Container(name="c", image="i")]),
        )
        core.create_namespaced_pod("default", pod)
        allot_cluster.wait_for_phase("q", "Running")
        found = core.read_namespaced_pod("q", "default")
        allot_cluster.delete("pods", "q")

    assert found.status is not None
    assert found.status.phase == "Running"


@pytest.mark.allot_cluster(virtual_time=True, has_scheduler=False)
def test_what_does_not_become_so(allot_cluster: AllotCluster) -> None:
    allot_cluster.apply(POD)

    with pytest.raises(AssertionError, match="timed out after 5 s waiting for Pod p"):
        allot_cluster.wait_for_phase("p", "Running", seconds=5)
    with pytest.raises(LookupError, match="does not serve kind Thing"):
        allot_cluster.get("Thing", "a")
    assert allot_cluster.get("Pod", "missing") is None


@pytest.mark.allot_cluster(virtual_time=True)
def test_metrics_of_the_parts(allot_cluster: AllotCluster) -> None:
    async def page(path: str) -> str:
        return (await allot_cluster.client.request("GET", path)).body.decode()

    assert "scheduler_schedule_attempts" in allot_cluster.run(page("/metrics/scheduler"))
    assert "workqueue_adds_total" in allot_cluster.run(page("/metrics/controllers"))
    assert "apiserver_request_total" in allot_cluster.run(page("/metrics"))
    with pytest.raises(ApiStatusError, match="404"):
        allot_cluster.run(page("/metrics/missing"))


@pytest.mark.allot_cluster(
    virtual_time=True,
    feature_gates={"DRADerivedAttributes": False},
    scheduler_gates={"DRADerivedAttributes": True},
)
def test_gates_of_components_may_differ(allot_cluster: AllotCluster) -> None:
    parts = allot_cluster.settings.parts
    assert DERIVED_ATTRIBUTES not in allot_cluster.settings.gates
    assert parts.scheduler_gates is not None
    assert DERIVED_ATTRIBUTES in parts.scheduler_gates
    assert parts.controller_gates == allot_cluster.settings.gates


def test_what_is_stored_survives_a_restart(tmp_path: Path) -> None:
    for cluster in (VirtualTimeCluster(), RealTimeCluster(tmp_path, storage="sqlite")):
        with cluster:
            cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
            cluster.restart(
                replace(cluster.settings, feature_gates={"DRAResourcePoolStatus": False})
            )
            assert cluster.get("Node", "n") is not None
            with pytest.raises(LookupError):
                cluster.list("ResourcePoolStatusRequest")
            cluster.restart(ClusterSettings())
            assert cluster.list("ResourcePoolStatusRequest") == []
            cluster.restart()
            assert cluster.get("Node", "n") is not None
