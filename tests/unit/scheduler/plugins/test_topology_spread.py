from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import Hint
from allot.scheduler.framework.status import Code
from allot.scheduler.plugins.topology_spread import PodTopologySpread
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.workloads import WorkloadSelectors
from tests.unit.scheduler.state.objects import (
    HOST,
    ZONE,
    a_cluster,
    a_node_facts,
    a_pod_info,
    answers,
    reasons,
)

UNEVEN = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{UNEVEN} (missing required label)"
WEB = {"matchLabels": {"app": "web"}}


def spread(key: str = ZONE, skew: int = 1, **fields: Any) -> dict[str, Any]:
    return {"maxSkew": skew, "topologyKey": key, "labelSelector": WEB, **fields}


def web(*constraints: dict[str, Any], name: str = "new", **fields: Any) -> PodInfo:
    return a_pod_info(
        name, labels={"app": "web"}, topologySpreadConstraints=list(constraints), **fields
    )


def there(*nodes: str, **fields: Any) -> list[PodInfo]:
    return [web(name=f"p{index}", node=node, **fields) for index, node in enumerate(nodes)]


def zones(*pods: PodInfo) -> ClusterState:
    """Nodes a1, a2 in zone a, b1 in zone b, c1 in zone c which is tainted."""
    nodes = [a_node_facts(name, labels={ZONE: name[0]}) for name in ("a1", "a2", "b1")]
    tainted = a_node_facts("c1", labels={ZONE: "c"}, taints=["x=y:NoSchedule"])
    return a_cluster([*nodes, tainted], pods)


@pytest.mark.parametrize(
    ("constraints", "pods", "refused"),
    [
        pytest.param([spread()], [], set(), id="empty"),
        pytest.param([spread()], ["a1"], {"a1", "a2"}, id="zone-is-ahead"),
        pytest.param([spread(skew=2)], ["a1"], set(), id="skew-allows-it"),
        pytest.param([spread()], ["a1", "b1"], {"a1", "a2", "b1"}, id="tainted-zone-counts"),
        pytest.param(
            [spread(nodeTaintsPolicy="Honor")], ["a1", "b1"], set(), id="tainted-zone-left-out"
        ),
        pytest.param([spread(HOST)], ["a1"], {"a1"}, id="by-host"),
        pytest.param(
            [spread(skew=2, minDomains=3)], ["a1", "b1", "c1"], set(), id="enough-domains"
        ),
        pytest.param(
            [spread(minDomains=4)],
            ["a1", "b1", "c1"],
            {"a1", "a2", "b1", "c1"},
            id="too-few-domains-make-the-minimum-zero",
        ),
        pytest.param(
            [spread(), spread(HOST)], ["a1", "b1"], {"a1", "a2", "b1"}, id="all-constraints-hold"
        ),
        pytest.param([spread(whenUnsatisfiable="ScheduleAnyway")], ["a1"], set(), id="only-a-wish"),
        pytest.param([spread(labelSelector=None)], ["a1"], set(), id="no-selector-counts-no-pod"),
    ],
)
def test_filter(constraints: list[dict[str, Any]], pods: list[str], refused: set[str]) -> None:
    cluster = zones(*there(*pods))

    assert dict.fromkeys(refused, UNEVEN) == reasons(
        PodTopologySpread(), web(*constraints), cluster
    )


def test_nodes_without_the_label_cannot_be_helped_by_eviction() -> None:
    cluster = zones()
    cluster.set_node(a_node_facts("nowhere"))

    status = answers(PodTopologySpread(), web(spread()), cluster)["nowhere"]

    assert (status.code, status.message) == (Code.UNRESOLVABLE, NO_LABEL)


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        pytest.param("Honor", set(), id="only-zones-the-pod-may-go-to"),
        pytest.param("Ignore", {"a1", "a2"}, id="all-zones"),
    ],
)
def test_node_affinity_policy(policy: str, refused: set[str]) -> None:
    cluster = zones(*there("a1"))
    pod = web(spread(nodeAffinityPolicy=policy), nodeSelector={ZONE: "a"})

    assert refused == set(reasons(PodTopologySpread(), pod, cluster)) - {"b1", "c1"}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"namespace": "other"}, id="other-namespace"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, id="terminating"),
    ],
)
def test_pods_that_do_not_count(fields: dict[str, Any]) -> None:
    assert reasons(PodTopologySpread(), web(spread()), zones(*there("a1", **fields))) == {}


def test_a_pod_that_does_not_match_its_own_selector_does_not_count_itself() -> None:
    pod = a_pod_info(topologySpreadConstraints=[spread()])

    assert reasons(PodTopologySpread(), pod, zones(*there("a1"))) == {}


def test_what_if_pods_came_and_went() -> None:
    victim = there("a1")[0]
    cluster = zones(victim)
    node = cluster.node("a1")
    assert node is not None
    plugin, state, pod = PodTopologySpread(), CycleState(), web(spread())
    plugin.pre_filter(state, pod, cluster)
    trial = state.clone()

    plugin.remove_pod(trial, pod, victim, node)
    assert plugin.filter(trial, pod, node).is_success
    plugin.add_pod(trial, pod, victim, node)
    assert plugin.filter(trial, pod, node).message == UNEVEN
    assert plugin.filter(state, pod, node).message == UNEVEN


def scores(plugin: PodTopologySpread, pod: PodInfo, cluster: ClusterState) -> dict[str, int]:
    state = CycleState()
    nodes = cluster.nodes
    if plugin.pre_score(state, pod, cluster, nodes).is_skip:
        return {}
    raw = [plugin.score(state, pod, node) for node in nodes]
    plugin.normalize(state, pod, nodes, raw)
    return {node.name: score for node, score in zip(nodes, raw, strict=True)}


SOFT: dict[str, Any] = {"whenUnsatisfiable": "ScheduleAnyway"}


def test_emptier_zones_score_higher() -> None:
    cluster = zones(*there("a1", "a2", "b1"))
    found = scores(PodTopologySpread(), web(spread(**SOFT)), cluster)

    assert found["a1"] == found["a2"] < found["b1"] < found["c1"] == 100


def test_nodes_without_the_label_score_nothing() -> None:
    cluster = zones(*there("a1"))
    cluster.set_node(a_node_facts("nowhere"))

    assert scores(PodTopologySpread(), web(spread(**SOFT)), cluster)["nowhere"] == 0


def test_all_equal_scores_are_all_best() -> None:
    assert set(scores(PodTopologySpread(), web(spread(**SOFT)), zones()).values()) == {100}


def a_service(**selector: str) -> WorkloadSelectors:
    workloads = WorkloadSelectors()
    workloads.set_service("default", "svc", {"spec": {"selector": selector}})
    return workloads


def test_pods_of_a_service_are_spread_by_default() -> None:
    plugin = PodTopologySpread(default_selector=a_service(app="web").selector_of)
    cluster = zones(*there("a1", "a1", "a1"))
    found = scores(plugin, web(), cluster)

    assert found["a1"] < found["a2"] < found["b1"]
    assert scores(plugin, a_pod_info(), cluster) == {}, "belongs to no service"


def test_pods_of_a_replica_set_are_spread_by_default() -> None:
    workloads = WorkloadSelectors()
    workloads.set_workload("ReplicaSet", "default", "rs", {"spec": {"selector": WEB}})
    owner = {"kind": "ReplicaSet", "name": "rs", "controller": True}
    plugin = PodTopologySpread(default_selector=workloads.selector_of)
    pod = web(metadata={"ownerReferences": [owner]})

    assert scores(plugin, pod, zones(*there("a1")))["b1"] == 100
    workloads.remove_workload("ReplicaSet", "default", "rs")
    assert scores(plugin, pod, zones(*there("a1"))) == {}


def test_defaults_can_be_listed_and_then_even_filter() -> None:
    args = {"defaultingType": "List", "defaultConstraints": [spread(labelSelector=None)]}
    plugin = PodTopologySpread(args, a_service(app="web").selector_of)

    assert set(reasons(plugin, web(), zones(*there("a1")))) == {"a1", "a2"}


def test_nothing_to_do_without_constraints() -> None:
    plugin, cluster = PodTopologySpread(), zones()

    assert plugin.pre_filter(CycleState(), web(), cluster).status.is_skip
    assert plugin.pre_score(CycleState(), web(), cluster, cluster.nodes).is_skip


def test_pods_of_one_workload_are_counted_once() -> None:
    cluster = zones(*there(*["a1", "b1"] * 50))
    plugin = PodTopologySpread()

    for index in range(10):
        pod = web(spread(), name=f"new{index}")
        assert "c1" not in reasons(plugin, pod, cluster)
        cluster.assume_pod(pod, "c1")

    assert cluster.pod_scans == 1


@pytest.mark.parametrize(
    ("old", "new", "worth"),
    [
        pytest.param(None, web(name="x"), True, id="one-more"),
        pytest.param(web(name="x"), None, True, id="one-less"),
        pytest.param(None, a_pod_info(), False, id="a-stranger"),
        pytest.param(web(name="x"), a_pod_info("x"), True, id="no-longer-one-of-us"),
        pytest.param(web(name="x"), web(name="x"), False, id="still-one-of-us"),
    ],
)
def test_pod_hints(old: PodInfo | None, new: PodInfo | None, worth: bool) -> None:
    hint = PodTopologySpread().events_to_register()[0].hint

    assert hint is not None
    assert (Hint.QUEUE if worth else Hint.SKIP) == hint(web(spread()), old, new)


# --- the law: the filter says what the definition says ---


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["a1", "a2", "b1", "c1"]), max_size=8),
    st.integers(1, 3),
    st.sampled_from([ZONE, HOST]),
    st.integers(1, 5),
)
def test_agrees_with_the_definition(nodes: list[str], skew: int, key: str, least: int) -> None:
    cluster = zones(*there(*nodes))
    domain = {node.name: node.labels[key] for node in cluster.nodes}
    counts = dict.fromkeys(domain.values(), 0)
    for name in nodes:
        counts[domain[name]] += 1
    floor = min(counts.values()) if len(counts) >= least else 0

    refused = set(reasons(PodTopologySpread(), web(spread(key, skew, minDomains=least)), cluster))

    assert refused == {name for name in domain if counts[domain[name]] + 1 - floor > skew}
