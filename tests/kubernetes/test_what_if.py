"""`allot what-if` says what real Kubernetes then does: each change is asked about, made, and compared pod by pod.

Nodes are objects without kubelets: the test says that bound pods run and removes those that are deleted. Pods prefer
nodes in one order, so that no two are equally good and kube-scheduler has nothing to choose at random.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from allot.cli.question_options import described_objects
from allot.client import resources
from allot.questions.changes import TAINT_KEY
from allot.questions.what_if import short_message
from allot.testing.builders import manifest
from allot.testing.manifests import (
    a_device_manifest,
    a_dra_manifest,
    a_node_manifest,
    a_request_manifest,
    a_slice_manifest,
)
from tests.acceptance.runner.rest import RestClient
from tests.integration.test_up import allot
from tests.integration.test_what_if import a_workload
from tests.kubernetes.programs import NEEDS_KUBERNETES
from tests.kubernetes.test_twin import CLASS, MERGE, NODES_PATH, PODS, RESOURCE, kubernetes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), NEEDS_KUBERNETES]

log = logging.getLogger(__name__)

SETTLED_SECONDS: Final = 90.0
STABLE_SECONDS: Final = 3.0
KUBELET_SECONDS: Final = 0.25
DEVICES: Final = 4
CPUS: Final = {"node-a": 20, "node-b": 35, "node-c": 64}
"""Nodes and their size."""
PREFERENCES: Final = {"node-c": 100, "node-d": 61, "node-b": 37, "node-a": 17}
PATHS: Final = {
    "Node": NODES_PATH,
    "ResourceSlice": f"{RESOURCE}/resourceslices",
    "DeviceClass": f"{RESOURCE}/deviceclasses",
    "ResourceClaim": f"{RESOURCE}/namespaces/default/resourceclaims",
    "ResourceClaimTemplate": f"{RESOURCE}/namespaces/default/resourceclaimtemplates",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/default/statefulsets",
    "Job": "/apis/batch/v1/namespaces/default/jobs",
    "Pod": PODS,
}
Places = dict[str, list[str]]
"""The nodes of the pods of each workload; of those that wait, an empty string."""


# --- objects ---


def ready_node(name: str, cpu: int) -> dict[str, Any]:
    capacity = {"cpu": str(cpu), "memory": "256Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return a_node_manifest(
        name,
        labels={"kubernetes.io/hostname": name},
        conditions=[ready],
        status={"capacity": capacity, "allocatable": capacity},
    )


def gpu_slice(node: str) -> dict[str, Any]:
    devices = (a_device_manifest(f"gpu-{each}", {"model": "H100"}) for each in range(DEVICES))
    return a_slice_manifest(*devices, name=f"slice-{node}", node=node, driver=CLASS)


def a_placed_workload(
    kind: str, name: str, replicas: int, template: str, **spec: Any
) -> dict[str, Any]:
    """A workload whose pods prefer nodes in the order of `PREFERENCES`."""
    preferred = [
        {"weight": weight, "preference": {"matchExpressions": [_is_node(node)]}}
        for node, weight in PREFERENCES.items()
    ]
    node_affinity = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    affinity = {"nodeAffinity": node_affinity}
    return a_workload(kind, name, replicas, template, affinity=affinity, **spec)


def _is_node(name: str) -> dict[str, Any]:
    return {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}


def a_template(name: str, count: int) -> dict[str, Any]:
    devices = {"requests": [a_request_manifest("gpu", CLASS, count=count)]}
    return a_dra_manifest("ResourceClaimTemplate", name, {"spec": {"devices": devices}})


def gpu_claim(name: str) -> dict[str, Any]:
    return a_dra_manifest("ResourceClaim", name, a_template(name, 1)["spec"]["spec"])


def start() -> Iterator[dict[str, Any]]:
    """Three nodes, and what the workloads need."""
    selector = {"cel": {"expression": f'device.driver == "{CLASS}"'}}
    yield {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": CLASS},
        "spec": {"selectors": [selector]},
    }
    yield {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    }
    for name, cpu in CPUS.items():
        yield ready_node(name, cpu)
        yield gpu_slice(name)
    yield a_template("one", 1)
    yield a_template("three", 3)
    yield gpu_claim("unused")


WORKLOADS: Final = (
    a_placed_workload("Deployment", "big", 2, "three"),
    a_placed_workload("StatefulSet", "db", 2, "one"),
    a_placed_workload("Deployment", "web", 2, "one"),
    a_placed_workload("Deployment", "plain", 3, ""),
)
"""One after the other; then ten of twelve devices are held."""
MORE: Final = a_placed_workload("Deployment", "more", 3, "one")
IMPORTANT: Final = a_placed_workload("Deployment", "important", 1, "", priorityClassName="high")
IMPORTANT["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "60"}}
WAITING: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "waiting", "labels": {"app": "waiting"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "registry.example/main:1",
                "resources": {"claims": [{"name": "gpu"}]},
            }
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "unused"}],
    },
}


# --- the real cluster ---


class RealCluster:
    """Kubernetes, and the changes that are made to it."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._client = RestClient.from_kubeconfig(kubeconfig)

    def close(self) -> None:
        self._client.close()

    def pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._client.call("GET", PODS)["items"]
        return found

    def create(self, *documents: dict[str, Any]) -> None:
        for body in documents:
            path = PATHS[body["kind"]]
            self._client.call("POST", path, body=body)
            if body["kind"] == "Node":  # tainted until a controller removes that
                self.patch("Node", body["metadata"]["name"], {"spec": {"taints": None}})

    def patch(self, kind: str, name: str, body: dict[str, Any]) -> None:
        self._client.call("PATCH", f"{PATHS[kind]}/{name}", body=body, content_type=MERGE)

    def delete(self, kind: str, name: str) -> None:
        self._client.call("DELETE", f"{PATHS[kind]}/{name}")

    def scale(self, kind: str, name: str, replicas: int) -> None:
        self.patch(kind, name, {"spec": {"replicas": replicas}})

    def evict(self, name: str) -> None:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        self._client.call("POST", f"{PODS}/{name}/eviction", body=body)

    def drain(self, node: str) -> None:
        self.patch("Node", node, {"spec": {"unschedulable": True}})
        for pod in self.pods():
            if pod["spec"].get("nodeName") == node:
                self.evict(pod["metadata"]["name"])

    def taint_node(self, node: str) -> None:
        taints = [{"key": TAINT_KEY, "effect": "NoExecute"}]
        self.patch("Node", node, {"spec": {"taints": taints}})

    def taint_device(self, node: str, device: str) -> None:
        """Publish the slice with a taint, as a driver does."""
        path = f"{PATHS['ResourceSlice']}/slice-{node}"
        slice_ = self._client.call("GET", path)
        for each in slice_["spec"]["devices"]:
            if each["name"] == device:
                each["taints"] = [{"key": TAINT_KEY, "effect": "NoExecute"}]
        slice_["spec"]["pool"]["generation"] += 1
        self._client.call("PUT", path, body=slice_)


@contextmanager
def kubelets(kubeconfig: Path) -> Iterator[None]:
    """Pods with a node run, and end at once when they are deleted."""
    is_over = threading.Event()

    def run() -> None:
        with RestClient.from_kubeconfig(kubeconfig) as client:
            while not is_over.wait(KUBELET_SECONDS):
                for pod in client.call("GET", PODS)["items"]:
                    _treat(client, pod)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _treat(client: RestClient, pod: dict[str, Any]) -> None:
    """What a kubelet does for a pod. Pods that are gone meanwhile do not matter."""
    path = f"{PODS}/{pod['metadata']['name']}"
    if not pod["spec"].get("nodeName"):
        return
    if pod["metadata"].get("deletionTimestamp"):
        uid = {"uid": pod["metadata"]["uid"]}
        client.request("DELETE", path, body={"gracePeriodSeconds": 0, "preconditions": uid})
    elif pod["status"].get("phase") == "Pending":
        created = pod["metadata"]["creationTimestamp"]
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": created}
        conditions = [*pod["status"].get("conditions", ()), ready]
        status = {"phase": "Running", "startTime": created, "conditions": conditions}
        client.request("PATCH", f"{path}/status", body={"status": status}, content_type=MERGE)


def workload_of(name: str) -> str:
    return name.partition("-")[0]


def places(pods: list[dict[str, Any]]) -> Places:
    found: Places = {}
    for pod in pods:
        name = workload_of(pod["metadata"]["name"])
        found.setdefault(name, []).append(pod["spec"].get("nodeName", ""))
    return {name: sorted(nodes) for name, nodes in found.items()}


def wait_for(cluster: RealCluster, expected: Places | None = None) -> list[dict[str, Any]]:
    """The pods, when they are as expected; without an expectation, when all were tried and none changes any more."""
    deadline = time.monotonic() + SETTLED_SECONDS
    since, last = time.monotonic(), None
    while True:
        pods = cluster.pods()
        found = places(pods)
        decided = expected is not None or all(_is_decided(pod) for pod in pods)
        if found != last or not decided:
            since, last = time.monotonic(), found
        is_stable = time.monotonic() - since > STABLE_SECONDS
        if is_stable and (expected is None or found == expected):
            return pods
        assert time.monotonic() < deadline, f"expected {expected}, found {found}"
        time.sleep(0.3)


def _is_decided(pod: dict[str, Any]) -> bool:
    """Whether the scheduler has tried the pod; one whose claim is missing is not tried."""
    return bool(pod["status"].get("conditions")) or pod["metadata"]["name"] == "waiting"


# --- the answer ---


def answer(cluster: RealCluster, options: list[str]) -> dict[str, Any]:
    """What would happen, by the rules of Kubernetes v1.38."""
    asked = ("--kubeconfig", cluster.kubeconfig, "--rules", "v1.38", "-o", "json")
    ended = allot("what-if", *options, *asked)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def places_after(pods: list[dict[str, Any]], said: dict[str, Any]) -> Places:
    """Where pods are after the effects."""
    nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}
    effects = [(each["pod"].removeprefix("default/"), each) for each in said["effects"]]
    for name, effect in effects:
        nodes.pop(effect.get("replaces", "").removeprefix("default/") or name, None)
    for name, effect in effects:
        if effect["effect"] not in ("evicted", "ends"):
            nodes[name] = effect.get("after", "")
    found: Places = {}
    for name, node in nodes.items():
        found.setdefault(workload_of(name), []).append(node)
    return {name: sorted(each) for name, each in found.items()}


def check_reasons(said: dict[str, Any], pods: list[dict[str, Any]]) -> None:
    """Pods that would wait do so for the reason that was said. Pods whose claim is missing are not tried."""
    messages: dict[str, set[str]] = {}
    for pod in pods:
        for condition in pod["status"].get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                name = workload_of(pod["metadata"]["name"])
                messages.setdefault(name, set()).add(short_message(condition.get("message", "")))
    for each in said["effects"]:
        if each["effect"] == "waits":
            reason = each["reason"].partition("; on ")[0]
            name = workload_of(each["pod"].removeprefix("default/"))
            assert name == "waiting" or reason in messages[name]


class Step(NamedTuple):
    """A change: how it is asked about, and how it is made."""

    options: list[str]
    really: Callable[[RealCluster], object]


def steps(directory: Path) -> Iterator[Step]:
    """Changes that follow each other."""
    yield Step(
        ["--scale", "deployment/web=5"], lambda cluster: cluster.scale("Deployment", "web", 5)
    )
    new = [ready_node("node-d", 50), gpu_slice("node-d")]
    yield Step(
        ["--add-node", _file(directory / "node.yaml", *new)], lambda cluster: cluster.create(*new)
    )
    yield Step(
        ["--taint", f"device/{CLASS}/node-d/gpu-0"],
        lambda cluster: cluster.taint_device("node-d", "gpu-0"),
    )
    yield Step(["--drain", "node-b"], lambda cluster: cluster.drain("node-b"))
    yield Step(["--evict", "pod/db-0"], lambda cluster: cluster.evict("db-0"))
    yield Step(["--remove", "deployment/big"], lambda cluster: cluster.delete("Deployment", "big"))
    yield Step(["-f", _file(directory / "more.yaml", MORE)], lambda cluster: cluster.create(MORE))
    yield Step(
        ["-f", _file(directory / "important.yaml", IMPORTANT)],
        lambda cluster: cluster.create(IMPORTANT),
    )

    def remove_and_create(cluster: RealCluster) -> None:
        cluster.delete("ResourceClaim", "unused")
        cluster.create(WAITING)

    waiting = _file(directory / "waiting.yaml", WAITING)
    yield Step(["--remove", "claim/unused", "-f", waiting], remove_and_create)
    hardware = [
        manifest(obj) if resource is not resources.NODES else dict(obj.data)
        for resource, obj in described_objects(("gpu-server=1",), "-new")
        if resource is not resources.DEVICE_CLASSES
    ]

    def add_and_taint(cluster: RealCluster) -> None:
        cluster.create(*hardware)
        wait_for(cluster)
        cluster.taint_node("node-c")
        wait_for(cluster)
        cluster.scale("StatefulSet", "db", 1)

    yield Step(
        ["--add", "gpu-server=1", "--taint", "node/node-c", "--scale", "statefulset/db=1"],
        add_and_taint,
    )


def _file(path: Path, *documents: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


def test_kubernetes_does_what_was_said(tmp_path: Path) -> None:
    with kubernetes(tmp_path / "kubernetes") as kubeconfig, kubelets(kubeconfig):
        cluster = RealCluster(kubeconfig)
        try:
            cluster.create(*start())
            for workload in WORKLOADS:
                cluster.create(workload)
                pods = wait_for(cluster)
            assert not any("" in nodes for nodes in places(pods).values())
            for options, really in steps(tmp_path):
                said = answer(cluster, options)
                expected = places_after(pods, said)
                log.info("%s: %s", " ".join(options), said["counts"])
                really(cluster)
                pods = wait_for(cluster, expected)
                check_reasons(said, pods)
        finally:
            cluster.close()
