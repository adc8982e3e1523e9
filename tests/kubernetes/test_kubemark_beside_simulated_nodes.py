"""One cluster with both kinds of nodes: kubemark's, with Kubernetes' kubelet, and simulated ones with their devices."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.acceptance.server_process import running_cluster
from tests.kubernetes.programs import NEEDS_KUBERNETES, node_kubeconfig, program, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), NEEDS_KUBERNETES]
WAIT_SECONDS = 180.0
HOLLOW = ("hollow-0", "hollow-1")
SIMULATED = ("gpu-server-0", "gpu-server-1")
WORKLOADS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 8
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      containers: [{name: c, image: i}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec:
  replicas: 6
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
      containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
"""


class Mixed(NamedTuple):
    """The cluster, and what its programs wrote."""

    admin: Path
    directory: Path

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        command = [str(program("kubectl")), "--kubeconfig", str(self.admin), *arguments]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def items(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, "-o", "json"))["items"]
        return found

    def until(self, holds: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + WAIT_SECONDS
        while not (found := holds()):
            assert time.monotonic() < deadline, f"timed out waiting for {what}"
            time.sleep(0.5)
        return found

    def ready_nodes(self) -> set[str]:
        return {
            node["metadata"]["name"]
            for node in self.items("nodes")
            for condition in node["status"].get("conditions", ())
            if (condition["type"], condition["status"]) == ("Ready", "True")
        }

    def leases(self) -> set[str]:
        text = self.kubectl("get", "leases", "-n", "kube-node-lease", "-o", "json")
        return {each["metadata"]["name"] for each in json.loads(text)["items"]}

    def running(self, app: str) -> Counter[str]:
        """The running pods of a Deployment, by node."""
        return Counter(
            pod["spec"]["nodeName"]
            for pod in self.items("pods")
            if pod["metadata"].get("labels", {}).get("app") == app
            and pod["status"]["phase"] == "Running"
            and "deletionTimestamp" not in pod["metadata"]
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    """`allot up` with two simulated servers, and two kubelets of Kubernetes."""
    directory = tmp_path_factory.mktemp("mixed")
    with ExitStack() as stack:
        admin = stack.enter_context(running_cluster(directory, "--hardware", "gpu-server=2"))
        for name in HOLLOW:
            stack.enter_context(
                running(
                    "kubemark",
                    "--morph=kubelet",
                    f"--name={name}",
                    f"--kubeconfig={node_kubeconfig(directory, name)}",
                    "--kubelet-port=0",
                    "--kubelet-read-only-port=0",
                    "--use-host-image-service=false",  # this machine has no such service
                    log=directory / f"{name}.log",
                )
            )
        yield Mixed(admin, directory)


def test_pods_run_on_both(cluster: Mixed) -> None:
    everywhere = {*HOLLOW, *SIMULATED}
    cluster.until(lambda: cluster.ready_nodes() == everywhere, "all nodes")
    cluster.kubectl("apply", "-f", "-", stdin=WORKLOADS)

    cluster.until(
        lambda: cluster.running("web") == dict.fromkeys(everywhere, 2), "two pods on each node"
    )
    cluster.until(lambda: cluster.running("train").total() == 6, "pods with devices")
    assert set(cluster.running("train")) <= set(SIMULATED)
    cluster.until(lambda: cluster.leases() == everywhere, "a lease for each node")


def test_a_drained_node_of_one_kind_is_replaced_by_the_others(cluster: Mixed) -> None:
    """And neither kind touches the nodes of the other: they keep their versions of the kubelet."""
    cluster.until(lambda: cluster.running("web").total() == 8, "pods")
    versions = {
        node["metadata"]["name"]: node["status"]["nodeInfo"]["containerRuntimeVersion"]
        for node in cluster.items("nodes")
    }

    cluster.kubectl("cordon", HOLLOW[0])
    cluster.kubectl("delete", "deployment", "web")
    cluster.until(lambda: not cluster.running("web"), "the pods to end")
    cluster.kubectl("delete", "deployment", "train")
    cluster.until(lambda: not cluster.items("pods"), "all pods to be deleted")
    cluster.until(lambda: not cluster.items("resourceclaims"), "all claims to be deleted")
    cluster.kubectl("apply", "-f", "-", stdin=WORKLOADS.replace("maxSkew: 1", "maxSkew: 8"))

    cluster.until(lambda: cluster.running("web").total() == 8, "pods on the other nodes")
    assert HOLLOW[0] not in cluster.running("web")
    after = {
        node["metadata"]["name"]: node["status"]["nodeInfo"]["containerRuntimeVersion"]
        for node in cluster.items("nodes")
    }
    assert after == versions
    assert len({versions[name] for name in (*HOLLOW, *SIMULATED)}) == 2
