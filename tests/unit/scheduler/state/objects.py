"""Pods, nodes and clusters in one line, as the scheduler sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.plugins import FilterPlugin, PreFilterPlugin
from allot.scheduler.framework.status import Status
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeFacts, NodeInfo
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import a_node, a_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def a_container(requests: Mapping[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": dict(requests or {})}, **fields}


def a_pod_info(
    name: str = "pod",
    requests: Mapping[str, Any] | None = None,
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **fields: Any,
) -> PodInfo:
    """A pod with one container that requests this much. The fields are those of `a_pod`."""
    meta = ({"labels": dict(labels)} if labels else {}) | dict(metadata or {})
    given = {"uid": f"uid-{namespace}-{name}", "containers": [a_container(requests)]} | fields
    return PodInfo.of(a_pod(name, namespace=namespace, metadata=meta, **given))


def a_node_facts(
    name: str = "node",
    allocatable: Mapping[str, Any] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    status: Mapping[str, Any] | None = None,
    **fields: Any,
) -> NodeFacts:
    """A node with 4 cpus, 8Gi and room for 10 pods, labelled with its name. The fields are those of `a_node`."""
    has = {"cpu": "4", "memory": "8Gi", "pods": "10"} | dict(allocatable or {})
    reported = {"allocatable": has, **(status or {})}
    labelled = {HOST: name, **(labels or {})}
    return NodeFacts.of(a_node(name, uid="", labels=labelled, status=reported, **fields))


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
