"""A cluster, its clone, and the cluster that runs the clone: the same devices, claims and pods."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from allot.testing.manifests import a_pod_manifest
from tests.acceptance.runner.rest import RestClient
from tests.integration.test_recordings import RecordProcess
from tests.integration.test_up import PODS, START_SECONDS, TEMPLATE, allot, up

WORKLOADS = """\
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: trainer}
spec:
  replicas: 2
  podManagementPolicy: Parallel
  serviceName: trainer
  selector: {matchLabels: {app: trainer}}
  template:
    metadata: {labels: {app: trainer}}
    spec:
      containers:
      - name: main
        image: registry.example/trainer:1
        env: [{name: TOKEN, value: hunter2}]
        resources: {claims: [{name: gpu}]}
      resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: registry.example/web:1}]}
"""
DUMPED = (
    "/api/v1/namespaces", "/api/v1/nodes", "/api/v1/pods", "/api/v1/events",
    "/apis/apps/v1/deployments", "/apis/apps/v1/replicasets", "/apis/apps/v1/statefulsets",
    "/apis/resource.k8s.io/v1/resourceclaims", "/apis/resource.k8s.io/v1/resourceclaimtemplates",
    "/apis/resource.k8s.io/v1/resourceslices", "/apis/resource.k8s.io/v1/deviceclasses",
)  # fmt: skip


def pods_of(client: RestClient) -> dict[str, tuple[str, str]]:
    return {
        pod["metadata"]["name"]: (pod["spec"].get("nodeName", ""), pod["status"]["phase"])
        for pod in client.call("GET", "/api/v1/pods")["items"]
    }


def claims_of(client: RestClient) -> dict[str, Any]:
    """The devices of each claim; its consumers are pods of this cluster, and own it."""
    uids = {pod["metadata"]["uid"] for pod in client.call("GET", "/api/v1/pods")["items"]}
    found = {}
    for claim in client.call("GET", "/apis/resource.k8s.io/v1/resourceclaims")["items"]:
        assert {each["uid"] for each in claim["status"]["reservedFor"]} <= uids
        assert {each["uid"] for each in claim["metadata"]["ownerReferences"]} <= uids
        found[claim["metadata"]["name"]] = claim["status"]["allocation"]["devices"]
    return found


def answers(*where: str | Path) -> list[Any]:
    return [
        json.loads(allot(command, *where, "-o", "json").stdout) for command in ("devices", "status")
    ]


def a_dump(client: RestClient) -> dict[str, Any]:
    """What `kubectl get ... -A -o yaml` prints, with a kind that allot does not serve."""
    items = []
    for path in DUMPED:
        found = client.call("GET", path)
        kind, version = found["kind"].removesuffix("List"), found["apiVersion"]
        items += [{"apiVersion": version, "kind": kind, **each} for each in found["items"]]
    foreign = {"name": "x", "namespace": "default", "uid": "1"}
    items.append({"apiVersion": "example.com/v1", "kind": "Foreign", "metadata": foreign})
    return {"apiVersion": "v1", "kind": "List", "items": items}


@pytest.mark.slow
def test_a_clone_a_dump_and_a_recording_run_as_the_same_cluster(tmp_path: Path) -> None:
    manifests, clone, dump, recording = (
        tmp_path / name for name in ("w.yaml", "a.allot", "dump.yaml", "a.rec")
    )
    manifests.write_text(TEMPLATE + WORKLOADS)
    data = tmp_path / "a"
    assert allot("up", "--data-dir", data, "--port", "0", "--wait", "-f", manifests).stdout
    try:
        with RestClient.from_kubeconfig(data / "kubeconfig") as client:
            client.call("POST", PODS, body=cpu_pod("too-large", cpu="5k"))
            record = RecordProcess(data / "kubeconfig", recording)
            pods, claims = pods_of(client), claims_of(client)
            assert len(claims) == 2
            dump.write_text(yaml.safe_dump(a_dump(client)))
        assert allot("clone", "--kubeconfig", data / "kubeconfig", "-o", clone).returncode == 0
        expected = answers("--kubeconfig", data / "kubeconfig")
        record.end(signal.SIGTERM)
    finally:
        allot("down", "--data-dir", data)
    assert clone.stat().st_mode & 0o777 == 0o600
    assert "hunter2" not in clone.read_text()
    assert answers("-f", clone) == expected
    twins: dict[str, tuple[str | Path, ...]] = {
        "b": ("--from", clone),
        "c": ("-f", dump),
        "d": ("--from", recording, "--at", "-0s"),
    }
    for name, arguments in twins.items():
        with up(tmp_path / name, *arguments) as twin:
            if name == "c":
                assert "Foreign (example.com/v1)" in (tmp_path / "up.log").read_text()
            with twin.client() as client:
                found = after_a_later_pod_runs(client)
                assert found.pop("later")[0]
                assert (found, claims_of(client)) == (pods, claims)
            assert answers("--kubeconfig", twin.directory / "kubeconfig") == expected


def after_a_later_pod_runs(client: RestClient) -> dict[str, tuple[str, str]]:
    """The pods when a new one runs: the scheduler, the controllers and the nodes have seen all objects then."""
    client.call("POST", PODS, body=cpu_pod("later"))
    deadline = time.monotonic() + START_SECONDS
    while pods_of(client)["later"][1] != "Running":
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return pods_of(client)


def cpu_pod(name: str, cpu: str = "1m") -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}}
    container = {"name": "main", "image": "registry.example/web:1", "resources": resources}
    return a_pod_manifest(name, containers=[container])


def test_only_clones_and_recordings_can_be_started_from(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(TEMPLATE)
    ended = allot("up", "--data-dir", tmp_path / "a", "--from", file)
    assert ended.returncode != 0
    assert "is not written by allot clone or allot record; -f loads" in ended.stderr
    ended = allot("up", "--data-dir", tmp_path / "a", "--from", file, "--at", "-1m")
    assert f"--at needs a recording, and {file} is none" in ended.stderr
    ended = allot("up", "--data-dir", tmp_path / "a", "--at", "-1m")
    assert "--at needs --from with a recording" in ended.stderr


def test_an_object_that_is_refused_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "broken", "uid": "1"},
        "spec": {},
    }
    file.write_text(yaml.safe_dump(pod))
    ended = allot("up", "--data-dir", tmp_path / "a", "--port", "0", "--wait", "-f", file)
    assert ended.returncode != 0
    assert "x.yaml: " in ended.stderr
    assert "broken" in ended.stderr
