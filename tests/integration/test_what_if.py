"""`allot what-if` says what a cluster then does: the same change is made to both, and the pods are compared.

The cluster is a whole one, with API server, scheduler, controllers and nodes, in virtual time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from allot.api.base import ApiObject
from allot.api.classes import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.meta import ObjectMeta
from allot.api.raw import RawObject
from allot.api.resource import DeviceTaint
from allot.client import resources
from allot.client.resources import Resource
from allot.client.snapshot_lists import take_snapshot
from allot.questions.changes import TAINT_KEY, AddObjects, Change, DrainNode
from allot.questions.cluster_model import ClusterModel
from allot.questions.observed_cluster import KINDS, ObservedCluster
from allot.questions.what_if import what_if
from allot.questions.written_changes import read_eviction, read_removal, read_scale, read_taint
from allot.testing.builders import manifest
from allot.testing.cluster import ClusterSettings, VirtualTimeCluster
from allot.testing.observed_clusters import snapshot_of

SETTLED_SECONDS = 400.0
TEMPLATES = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: three}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, count: 3}}]}}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
"""


def a_workload(kind: str, name: str, replicas: int, template: str, **spec: Any) -> dict[str, Any]:
    claims = [{"name": "gpu", "resourceClaimTemplateName": template}] if template else []
    container: dict[str, Any] = {
        "name": "main",
        "image": "registry.example/main:1",
        "resources": {
            "requests": {"cpu": "1"},
            **({"claims": [{"name": "gpu"}]} if template else {}),
        },
    }
    pod = {"containers": [container], "resourceClaims": claims} | spec
    field = "parallelism" if kind == "Job" else "replicas"
    found: dict[str, Any] = {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            field: replicas,
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    }
    if kind == "Job":
        pod["restartPolicy"] = "Never"
        found["spec"]["completions"] = replicas
    else:
        found["spec"]["selector"] = {"matchLabels": {"app": name}}
    if kind == "StatefulSet":
        found["spec"]["serviceName"] = name
    return found


WORKLOADS = (
    a_workload("Deployment", "web", 5, "one"),
    a_workload("Deployment", "big", 2, "three"),
    a_workload("StatefulSet", "db", 2, "one"),
    a_workload("Job", "batch", 2, "one"),
    a_workload("Deployment", "plain", 3, ""),
)


def drain(cluster: VirtualTimeCluster, name: str) -> None:
    cordon = {"spec": {"unschedulable": True}}
    cluster.run(cluster.client.patch(resources.NODES, ObjectKey("", name), cordon))
    for pod in cluster.list("Pod"):
        if pod["spec"].get("nodeName") == name:
            cluster.run(evict(cluster, pod["metadata"]["name"]))


async def evict(cluster: VirtualTimeCluster, name: str) -> None:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": "default"},
    }
    path = f"/api/v1/namespaces/default/pods/{name}/eviction"
    await cluster.client.request("POST", path, body=json.dumps(body).encode())


def scale(
    cluster: VirtualTimeCluster, resource: Resource[RawObject], name: str, replicas: int
) -> None:
    key = ObjectKey("default", name)
    cluster.run(cluster.client.patch(resource, key, {"spec": {"replicas": replicas}}))


TAINT_RULE = DeviceTaintRule(
    ObjectMeta(name="broken"),
    DeviceTaintRuleSpec(
        device_selector=DeviceTaintSelector(driver="gpu.example.com", pool="gpu-server-0"),
        taint=DeviceTaint(key="broken", effect="NoExecute"),
    ),
)


def taint_node(cluster: VirtualTimeCluster, name: str) -> None:
    taint = {"spec": {"taints": [{"key": TAINT_KEY, "effect": "NoExecute"}]}}
    cluster.run(cluster.client.patch(resources.NODES, ObjectKey("", name), taint))


MORE = a_workload("Deployment", "more", 6, "one")
IMPORTANT = a_workload("Deployment", "important", 4, "", priorityClassName="high")
IMPORTANT["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "60"}}


def added(*given: dict[str, Any] | ApiObject) -> AddObjects:
    objects = snapshot_of(
        *(each if isinstance(each, ApiObject) else RawObject(each) for each in given)
    )
    found = tuple((kind, obj) for kind in KINDS for obj in objects.of(kind))
    return AddObjects("add", found)


def scale_both_down(cluster: VirtualTimeCluster) -> None:
    scale(cluster, resources.DEPLOYMENTS, "web", 1)
    scale(cluster, resources.STATEFUL_SETS, "db", 1)


def scale_up_and_drain(cluster: VirtualTimeCluster) -> None:
    scale(cluster, resources.DEPLOYMENTS, "web", 9)
    cluster.advance(SETTLED_SECONDS)
    drain(cluster, "gpu-server-1")


Real = Callable[[VirtualTimeCluster], object]
CASES: list[tuple[str, list[Change], Real]] = [
    (
        "drain",
        [DrainNode("drain", "gpu-server-0")],
        lambda cluster: drain(cluster, "gpu-server-0"),
    ),
    (
        "scale-up",
        [read_scale("deployment/web=9", "default")],
        lambda cluster: scale(cluster, resources.DEPLOYMENTS, "web", 9),
    ),
    (
        "scale-down",
        [read_scale("deployment/web=1", "default"), read_scale("statefulset/db=1", "default")],
        scale_both_down,
    ),
    (
        "remove-a-workload",
        [read_removal("deployment/big", "default")],
        lambda cluster: cluster.delete("Deployment", "big"),
    ),
    ("add-a-workload", [added(MORE)], lambda cluster: cluster.apply(MORE)),
    ("preemption", [added(IMPORTANT)], lambda cluster: cluster.apply(IMPORTANT)),
    (
        "taint-devices",
        [added(TAINT_RULE)],
        lambda cluster: cluster.apply(manifest(TAINT_RULE)),
    ),
    (
        "taint-a-node",
        [read_taint("node/gpu-server-1")],
        lambda cluster: taint_node(cluster, "gpu-server-1"),
    ),
    (
        "two-changes",
        [
            read_scale("deployment/web=9", "default"),
            DrainNode("drain", "gpu-server-1"),
        ],
        scale_up_and_drain,
    ),
    (
        "evict-a-pod",
        [read_eviction("pod/db-0", "default")],
        lambda cluster: cluster.run(evict(cluster, "db-0")),
    ),
]


def places(pods: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The nodes of the pods of each workload; of those that wait, an empty string."""
    found: dict[str, list[str]] = {}
    for pod in pods:
        if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            continue
        label = pod["metadata"].get("labels", {}).get("app", pod["metadata"]["name"])
        found.setdefault(label, []).append(pod["spec"].get("nodeName", ""))
    return {name: sorted(nodes) for name, nodes in sorted(found.items())}


def observed_from(cluster: VirtualTimeCluster) -> ObservedCluster:
    snapshot = cluster.run(take_snapshot(cluster.client, KINDS))
    return ObservedCluster(snapshot, cluster.settings.gates)


@pytest.mark.parametrize(
    ("changes", "really"),
    [pytest.param(changes, really, id=name) for name, changes, really in CASES],
)
def test_the_cluster_does_what_was_said(changes: list[Change], really: Real) -> None:
    with VirtualTimeCluster(ClusterSettings(hardware=("gpu-server=2",))) as cluster:
        cluster.apply(TEMPLATES, *WORKLOADS)
        cluster.advance(SETTLED_SECONDS)
        observed = observed_from(cluster)
        model = ClusterModel(observed)
        model.settle()
        assert places([dict(pod.data) for pod in _pods(model)]) == places(cluster.list("Pod"))

        for change in changes:
            assert list(change.apply(model)) == []
            model.settle()
        really(cluster)
        cluster.advance(SETTLED_SECONDS)

        said = places([dict(pod.data) for pod in _pods(model)])
        assert said == places(cluster.list("Pod"))
        answer = what_if(observed, changes)
        waiting = sum(nodes.count("") for nodes in said.values())
        assert answer.waiting_after == waiting


def _pods(model: ClusterModel) -> Iterable[Pod]:
    return model.objects.of(resources.PODS)
