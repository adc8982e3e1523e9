"""Pods, nodes and clusters in one line, as the scheduler sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from allot.api.core import Node, Pod
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.plugins import FilterPlugin, PreFilterPlugin
from allot.scheduler.framework.status import Status
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeFacts, NodeInfo
from allot.scheduler.state.pods import PodInfo

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def a_container(requests: Mapping[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": dict(requests or {})}, **fields}


def a_pod(
    name: str = "pod",
    requests: Mapping[str, Any] | None = None,
    *,
    node: str = "",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    status: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> PodInfo:
    """A pod with one container that requests this much. Fields of its spec by their API names."""
    spec = {"containers": [a_container(requests)], **spec}
    if node:
        spec["nodeName"] = node
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
    if labels:
        meta["labels"] = dict(labels)  # type: ignore[assignment]
    return PodInfo.of(
        Pod({"metadata": meta | dict(metadata or {}), "spec": spec, "status": dict(status or {})})
    )


def a_node(
    name: str = "node",
    allocatable: Mapping[str, Any] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> NodeFacts:
    """A node with 4 cpus, 8Gi and room for 10 pods, labelled with its name. Taints as `key=value:effect`."""
    has = {"cpu": "4", "memory": "8Gi", "pods": "10"} | dict(allocatable or {})
    spec["taints"] = [_taint(text) for text in taints]
    return NodeFacts.of(
        Node(
            {
                "metadata": {"name": name, "labels": {HOST: name, **(labels or {})}},
                "spec": spec,
                "status": {"allocatable": has, **(status or {})},
            }
        )
    )


def _taint(text: str) -> dict[str, str]:
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "value": value, "effect": effect}


def a_cluster(nodes: Iterable[NodeFacts] = (), pods: Iterable[PodInfo] = ()) -> ClusterState:
    cluster = ClusterState()
    cluster.set_namespace("default", {})
    for node in nodes:
        cluster.set_node(node)
    for pod in pods:
        cluster.set_pod(pod)
    return cluster


def on_node(facts: NodeFacts, *pods: PodInfo) -> NodeInfo:
    """A node with these pods on it, whatever node they say they are on."""
    node = NodeInfo(facts.name, facts)
    for pod in pods:
        node.add_pod(pod)
    return node


def answers(plugin: FilterPlugin, pod: PodInfo, cluster: ClusterState) -> dict[str, Status]:
    """What the plugin says about each node, by way of its pre_filter; rejections there go for all."""
    state = CycleState()
    names: frozenset[str] | None = None
    if isinstance(plugin, PreFilterPlugin):
        status, names = plugin.pre_filter(state, pod, cluster)
        if status.is_skip:
            return {}
        if not status.is_success:
            return {node.name: status for node in cluster.nodes}
    found = {
        node.name: plugin.filter(state, pod, node)
        for node in cluster.nodes
        if names is None or node.name in names
    }
    return {name: status for name, status in found.items() if not status.is_success}


def reasons(plugin: FilterPlugin, pod: PodInfo, cluster: ClusterState) -> dict[str, str]:
    """The reasons of the nodes that refuse the pod."""
    return {name: status.message for name, status in answers(plugin, pod, cluster).items()}
