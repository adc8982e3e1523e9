"""`allot explain` against a running cluster, and as a kubectl plugin."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from allot.cli.main import allot
from allot.endpoints import EndpointResponse
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.endpoints import SchedulerEndpoints
from allot.testing.cluster import ClusterSettings, RealTimeCluster, VirtualTimeCluster

PROGRAMS = Path(sys.executable).parent
STORY = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, count: 9}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: greedy}
spec:
  containers: [{name: c, image: x, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: attached}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: fabric.example.com}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: patient}
spec:
  containers: [{name: c, image: x, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: attached}]
"""


def is_refused(pod: dict[str, Any] | None) -> bool:
    conditions = (pod or {}).get("status", {}).get("conditions", [])
    return any(each["reason"] == "Unschedulable" for each in conditions if "reason" in each)


def explained(what: str, kubeconfig: Path, *more: str) -> dict[str, Any]:
    command = ["explain", what, "--kubeconfig", str(kubeconfig), "-o", "json", *more]
    result = CliRunner().invoke(allot, command, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    found: dict[str, Any] = json.loads(result.output)
    return found


def test_pods_of_a_running_cluster(tmp_path: Path) -> None:
    settings = ClusterSettings(hardware=["gpu-server=1", "fabric"])
    with RealTimeCluster(tmp_path, settings) as cluster:
        cluster.apply(STORY)
        cluster.wait_for("Pod", "greedy", is_refused)
        cluster.wait_for("Pod", "patient", lambda pod: pod and "nominatedNodeName" in pod["status"])

        greedy = explained("pod/greedy", cluster.kubeconfig)
        patient = explained("pod/patient", cluster.kubeconfig, "-n", "default")
        claim = explained("claim/attached", cluster.kubeconfig)
        plugin = _through_kubectl("pod/greedy", cluster.kubeconfig, tmp_path)

    assert greedy["state"] == "DoesNotFit"
    assert greedy["nodes"][0]["node"] == "gpu-server-0"
    assert "finds 8 of 9 devices" in greedy["verdict"]
    assert any("ask for 8 devices instead of 9" in each["change"] for each in greedy["proposals"])
    assert patient["state"] == "WaitingForDevices"
    assert "fabric.example.com/Attached" in patient["verdict"]
    assert patient["deadline"] > patient["since"]
    assert (claim["state"], claim["pods"][0]["state"]) == ("Allocated", "WaitingForDevices")
    if plugin is not None:
        assert plugin["verdict"] == greedy["verdict"]


def _through_kubectl(what: str, kubeconfig: Path, home: Path) -> dict[str, Any] | None:
    """None where there is no kubectl, or allot is not installed."""
    kubectl = shutil.which("kubectl")
    if kubectl is None or not (PROGRAMS / "kubectl-allot").exists():
        return None
    flags = ["--kubeconfig", str(kubeconfig), "--context", "allot", "-n", "default", "-o", "json"]
    done = subprocess.run(
        [kubectl, "allot", "explain", what, *flags],
        env={"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus}
spec: {hard: {gpu.example.com.deviceclass.resource.k8s.io/devices: "8"}}
"""


def test_pods_that_wait_in_a_running_cluster(tmp_path: Path) -> None:
    settings = ClusterSettings(hardware=["gpu-server=1", "fabric"], binding_timeout="1200s")

    def is_counted(quota: dict[str, Any] | None) -> object:
        return quota and quota["status"].get("used")

    def is_refused_for(events: list[dict[str, Any]]) -> bool:
        return any(event["reason"] == "FailedResourceClaimCreation" for event in events)

    with RealTimeCluster(tmp_path, settings) as cluster:
        cluster.apply(QUOTA)
        cluster.wait_for("ResourceQuota", "gpus", is_counted)
        cluster.apply(STORY)
        for _ in range(600):
            if is_refused_for(cluster.list("events.v1")):
                break
            time.sleep(0.05)
        cluster.wait_for("Pod", "patient", lambda pod: pod and "nominatedNodeName" in pod["status"])

        greedy = explained("pod/greedy", cluster.kubeconfig)
        patient = explained("pod/patient", cluster.kubeconfig)

    assert greedy["obstacles"][0]["kind"] == "QuotaExceeded"
    assert "is limited to 8, 0 of it used and 9 asked for" in greedy["verdict"]
    since, deadline = map(datetime.fromisoformat, (patient["since"], patient["deadline"]))
    assert (deadline - since).total_seconds() == 1200
    assert "assumedTimeoutSeconds" not in patient


@pytest.mark.parametrize("rules", ["seeds", "v1.38"])
def test_gates_and_rules_are_those_of_the_cluster(tmp_path: Path, rules: str) -> None:
    gates = {"DRADeviceBindingConditions": False}
    settings = ClusterSettings(hardware=["gpu-server=1"], rules=rules, feature_gates=gates)

    with RealTimeCluster(tmp_path, settings) as cluster:
        command = ["status", "--kubeconfig", str(cluster.kubeconfig), "-o", "json"]
        status = CliRunner().invoke(allot, command, standalone_mode=False)
        cluster.apply(STORY)
        cluster.wait_for("Pod", "greedy", is_refused)
        found = explained("pod/greedy", cluster.kubeconfig)

    assert (found["rules"], found["featureGatesOf"]) == (rules, "scheduler")
    assert not any("assumed" in note for note in found["notes"])
    assert json.loads(status.stdout)["rules"] == rules


def test_the_schedulers_own_page_says_the_same() -> None:
    settings = ClusterSettings(hardware=["gpu-server=1"], has_scheduler=False)
    path = ["debug", "explain", "default", "greedy"]

    async def asked() -> tuple[EndpointResponse, EndpointResponse]:
        process = SchedulerProcess(cluster.client)
        process.informers.start()
        await process.informers.wait_synced()
        pages = SchedulerEndpoints(process, "token")
        answers = pages.more(path, ""), pages.more(path, "Bearer token")
        await process.informers.stop()
        return answers

    with VirtualTimeCluster(settings) as cluster:
        cluster.apply(STORY)
        cluster.wait_for(
            "Pod", "greedy", lambda pod: pod and pod["status"].get("resourceClaimStatuses")
        )
        refused, answer = cluster.run(asked())

    found = msgspec.json.decode(answer.body)
    assert refused.code == 403
    assert (answer.code, found["state"]) == (200, "DoesNotFit")
    assert found["nodes"][0]["requests"][0]["found"] == 8
    assert found["proposals"]


def test_there_must_be_a_cluster(tmp_path: Path) -> None:
    command = ["explain", "pod/x", "--kubeconfig", str(tmp_path / "none")]

    result = CliRunner().invoke(allot, command, standalone_mode=False)

    assert "no kubeconfig at" in str(result.exception)


def test_a_verdict_does_not_rest_on_what_the_user_may_not_read(tmp_path: Path) -> None:
    """A user with the role `view` in one namespace reads neither nodes nor devices."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "vera", "namespace": "default"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "view",
        },
        "subjects": [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "vera"},
        ],
    }
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {
            "devices": {
                "requests": [
                    {"name": "r", "exactly": {"deviceClassName": "gpu.example.com", "count": 30}}
                ]
            }
        },
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "r"}]}}],
            "resourceClaims": [{"name": "r", "resourceClaimName": "c"}],
        },
    }
    with RealTimeCluster(tmp_path / "allot", ClusterSettings(["gpu-server"])) as cluster:
        cluster.apply(binding, claim, pod)
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        config["users"][0]["user"]["as"] = "vera"
        restricted = tmp_path / "vera.kubeconfig"
        restricted.write_text(yaml.safe_dump(config))
        result = CliRunner().invoke(allot, ["explain", "pod/p", "--kubeconfig", str(restricted)])

    assert "Why pod default/p is pending cannot be told" in result.output
    assert "nodes, resourceslices, deviceclasses could not be read" in result.output
    assert "does not exist" not in result.output
