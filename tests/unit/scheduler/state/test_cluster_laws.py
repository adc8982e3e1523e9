"""Whatever happens in whatever order, the sums are those of the pods and nodes that are there."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api.selectors import labels_selector
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.matching_pods import PodQuery, PodSelector
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo
from tests.unit.scheduler.state.objects import (
    PREFERRED,
    REQUIRED,
    ZONE,
    a_cluster,
    a_container,
    a_node_facts,
    a_pod_info,
)

NODES = ("n0", "n1", "n2")
DB_PODS = PodQuery((PodSelector(frozenset({"default"}), labels_selector({"app": "db"})),))
TERM = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}}
SPECS: list[dict[str, Any]] = [
    {},
    {"affinity": {"podAntiAffinity": {REQUIRED: [TERM]}}},
    {"affinity": {"podAffinity": {PREFERRED: [{"weight": 5, "podAffinityTerm": TERM}]}}},
    {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
    {"containers": [a_container({"cpu": "1", "gpu.example.com/x": 2}, ports=[{"hostPort": 80}])]},
]

names = st.sampled_from([f"p{i}" for i in range(6)])


@st.composite
def pods(draw: st.DrawFn) -> PodInfo:
    name = draw(names)
    # The spec of a pod never changes, so it follows from its name.
    spec = SPECS[int(name[1:]) % len(SPECS)]
    return a_pod_info(
        name,
        {"cpu": draw(st.sampled_from(["1", "250m"])), "memory": "1Mi"},
        node=draw(st.sampled_from(["", *NODES])),
        labels={"app": draw(st.sampled_from(["db", "web"]))},
        status={"phase": draw(st.sampled_from(["Pending", "Running", "Failed"]))},
        **spec,
    )


@st.composite
def nodes(draw: st.DrawFn) -> Any:
    taints = draw(st.sampled_from([(), ("a=b:NoSchedule",), ("a=b:PreferNoSchedule",)]))
    images = draw(st.sampled_from([[], [{"names": ["app:v1"], "sizeBytes": 5}]]))
    labels = draw(st.sampled_from([{}, {ZONE: "a"}, {ZONE: "b"}]))
    return a_node_facts(
        draw(st.sampled_from(NODES)),
        labels=labels,
        taints=taints,
        unschedulable=draw(st.booleans()),
        status={"images": images},
    )


operations = st.one_of(
    st.tuples(st.just("set_pod"), pods()),
    st.tuples(st.just("remove_pod"), names),
    st.tuples(st.just("assume"), st.tuples(pods(), st.sampled_from(NODES))),
    st.tuples(st.just("forget"), names),
    st.tuples(st.just("set_node"), nodes()),
    st.tuples(st.just("remove_node"), st.sampled_from(NODES)),
    st.tuples(st.just("ask"), st.none()),
)


def perform(cluster: ClusterState, operation: str, value: Any) -> None:
    match operation:
        case "set_pod":
            cluster.set_pod(value)
        case "remove_pod":
            cluster.remove_pod(f"uid-default-{value}")
        case "assume":
            pod, node = value
            if cluster.pod(pod.uid) is None and not pod.is_finished:
                cluster.assume_pod(pod, node)
        case "forget":
            cluster.forget_pod(f"uid-default-{value}")
        case "set_node":
            cluster.set_node(value)
        case "remove_node":
            cluster.remove_node(value)
        case "ask":
            cluster.matching_pods(DB_PODS)


def sums(node: NodeInfo) -> dict[str, Any]:
    unlike = ("facts", "generation", "pods")
    found = {slot: getattr(node, slot) for slot in NodeInfo.__slots__ if slot not in unlike}
    return found | {"pods": set(node.pods)}


def terms(cluster: ClusterState) -> list[Any]:
    index = cluster.terms
    return [
        sorted((repr(term), dict(counts)) for term, counts in kind.items())
        for kind in (index.affinity, index.anti_affinity, index.preferred)
    ]


@settings(deadline=None)
@given(st.lists(operations, max_size=25))
def test_sums_are_those_of_a_cluster_built_afresh(history: list[tuple[str, Any]]) -> None:
    cluster = a_cluster()
    for operation, value in history:
        perform(cluster, operation, value)

    facts = [node.facts for node in cluster.nodes if node.facts is not None]
    fresh = a_cluster(facts, cluster.pods.values())

    assert {node.name: sums(node) for node in fresh.nodes} == {
        node.name: sums(node) for node in cluster.nodes
    }
    assert terms(fresh) == terms(cluster)
    assert fresh.matching_pods(DB_PODS) == cluster.matching_pods(DB_PODS)
    for name in (
        "nodes_by_image", "volume_claim_uses", "nodes_with_blocking_taints",
        "nodes_with_soft_taints", "unschedulable_nodes",
    ):  # fmt: skip
        assert getattr(fresh, name) == getattr(cluster, name), name


@settings(deadline=None)
@given(st.lists(operations, max_size=25))
def test_every_change_moves_the_generation(history: list[tuple[str, Any]]) -> None:
    """If a node looks different to plugins, its generation is another, and it counts as changed."""
    cluster = a_cluster()
    for operation, value in history:
        before = {node.name: (node.generation, sums(node)) for node in cluster.nodes}
        latest = max((generation for generation, _ in before.values()), default=0)
        perform(cluster, operation, value)
        changed = {node.name for node in cluster.nodes_changed_since(latest)}
        for node in cluster.nodes:
            generation, looked = before.get(node.name, (0, None))
            if looked != sums(node):
                assert node.generation != generation
                assert node.name in changed


@settings(deadline=None)
@given(st.lists(pods(), max_size=8, unique_by=lambda pod: pod.uid))
def test_requests_add_up(placed: list[PodInfo]) -> None:
    cluster = a_cluster([a_node_facts(name) for name in NODES], placed)
    expected: Counter[str] = Counter()
    for pod in placed:
        if pod.node_name and not pod.is_finished:
            expected[pod.node_name] += pod.requests.milli_cpu

    assert expected == Counter(
        {node.name: node.requested_milli_cpu for node in cluster.nodes if node.pods}
    )
