from __future__ import annotations

import pytest

from allot.api.selectors import labels_selector
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.matching_pods import PodQuery, PodSelector
from tests.unit.scheduler.state.objects import REQUIRED, ZONE, a_cluster, a_node_facts, a_pod_info

ONE_CPU = {"cpu": "1"}
APART = {
    "podAntiAffinity": {
        REQUIRED: [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}}]
    }
}


def requested(cluster: ClusterState, name: str = "node") -> int:
    node = cluster.node(name)
    assert node is not None
    return node.requested_milli_cpu


def test_an_assumed_pod_counts_at_once_and_once_only() -> None:
    cluster = a_cluster([a_node_facts()])
    pod = a_pod_info(requests=ONE_CPU)
    cluster.assume_pod(pod, "node")
    assert (requested(cluster), cluster.is_assumed(pod.uid)) == (1000, True)

    cluster.set_pod(pod.assigned_to("node"))

    assert (requested(cluster), cluster.is_assumed(pod.uid)) == (1000, False)


def test_the_api_server_knows_better_where_an_assumed_pod_is() -> None:
    cluster = a_cluster([a_node_facts("a"), a_node_facts("b")])
    pod = a_pod_info(requests=ONE_CPU)
    cluster.assume_pod(pod, "a")

    cluster.set_pod(pod.assigned_to("b"))

    assert (requested(cluster, "a"), requested(cluster, "b")) == (0, 1000)


def test_forgetting_takes_the_place_back_unless_it_was_confirmed() -> None:
    cluster = a_cluster([a_node_facts()])
    first, second = a_pod_info("a", ONE_CPU), a_pod_info("b", ONE_CPU)
    cluster.assume_pod(first, "node")
    cluster.assume_pod(second, "node")
    cluster.set_pod(second.assigned_to("node"))

    cluster.forget_pod(first.uid)
    cluster.forget_pod(second.uid)

    assert list(cluster.pods) == [second.uid]
    assert requested(cluster) == 1000


def test_news_of_a_pending_pod_do_not_touch_what_is_assumed() -> None:
    cluster = a_cluster([a_node_facts()])
    pod = a_pod_info(requests=ONE_CPU)
    cluster.assume_pod(pod, "node")

    cluster.set_pod(pod)

    assert cluster.is_assumed(pod.uid)
    assert requested(cluster) == 1000


def test_a_pod_cannot_have_two_places() -> None:
    cluster = a_cluster([a_node_facts()])
    cluster.assume_pod(a_pod_info(), "node")

    with pytest.raises(ValueError, match="already has a place"):
        cluster.assume_pod(a_pod_info(), "node")


def test_finished_pods_use_nothing() -> None:
    cluster = a_cluster([a_node_facts()], [a_pod_info(requests=ONE_CPU, node="node")])

    cluster.set_pod(a_pod_info(requests=ONE_CPU, node="node", status={"phase": "Succeeded"}))

    assert requested(cluster) == 0
    assert not cluster.pods


def test_pods_may_come_before_their_node_and_stay_after_it() -> None:
    cluster = a_cluster([], [a_pod_info(requests=ONE_CPU, node="node")])
    assert (cluster.node("node"), cluster.nodes) == (None, [])

    cluster.set_node(a_node_facts())
    assert requested(cluster) == 1000

    cluster.remove_node("node")
    assert cluster.node("node") is None
    cluster.set_node(a_node_facts())
    assert requested(cluster) == 1000


def test_nodes_take_turns_between_zones() -> None:
    zones = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "c1": "c", "c2": "c"}
    cluster = a_cluster(a_node_facts(name, labels={ZONE: zone}) for name, zone in zones.items())

    assert [node.name for node in cluster.nodes] == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_a_node_that_moves_to_another_zone_changes_its_turn() -> None:
    cluster = a_cluster(a_node_facts(name, labels={ZONE: "a"}) for name in ("one", "two", "three"))
    before = cluster.membership

    cluster.set_node(a_node_facts("three", labels={ZONE: "b"}))

    assert [node.name for node in cluster.nodes] == ["one", "three", "two"]
    assert cluster.membership != before


def test_generation_moves_with_what_plugins_can_see_and_with_nothing_else() -> None:
    cluster = a_cluster([a_node_facts(), a_node_facts("other")], [a_pod_info(node="node")])
    node, other = cluster.node("node"), cluster.node("other")
    assert node is not None
    assert other is not None
    seen, seen_other = node.generation, other.generation

    cluster.set_node(a_node_facts(status={"conditions": [{"type": "Ready", "status": "True"}]}))
    cluster.set_pod(a_pod_info(node="node", status={"phase": "Running"}))
    assert node.generation == seen

    cluster.set_node(a_node_facts(allocatable={"cpu": "8"}))
    assert node.generation > seen
    seen = node.generation
    cluster.set_pod(a_pod_info("second", node="node"))
    assert node.generation > seen
    assert other.generation == seen_other


def test_changed_nodes_are_found_without_looking_at_the_others() -> None:
    cluster = a_cluster(a_node_facts(f"n{i}") for i in range(5))
    seen = max(node.generation for node in cluster.nodes)

    cluster.set_pod(a_pod_info(node="n3"))
    cluster.set_node(a_node_facts("n1", allocatable={"cpu": "9"}))

    assert [node.name for node in cluster.nodes_changed_since(seen)] == ["n1", "n3"]


def test_a_question_is_counted_once_and_then_kept_up_to_date() -> None:
    cluster = a_cluster([a_node_facts("a"), a_node_facts("b")])
    meant = PodSelector(frozenset({"default"}), labels_selector({"app": "db"}))
    query = PodQuery((meant,), with_terminating=False)
    assert cluster.matching_pods(query) == {}

    cluster.set_pod(a_pod_info("one", node="a", labels={"app": "db"}))
    cluster.set_pod(a_pod_info("two", node="a", labels={"app": "db"}))
    cluster.set_pod(a_pod_info("other", node="b", labels={"app": "web"}))
    assert cluster.matching_pods(query) == {"a": 2}

    cluster.set_pod(a_pod_info("two", node="a", labels={"app": "web"}))
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    cluster.set_pod(a_pod_info("one", node="a", labels={"app": "db"}, metadata=leaving))
    assert cluster.matching_pods(query) == {}
    assert cluster.pod_scans == 1


def test_terms_follow_the_labels_of_their_node() -> None:
    cluster = a_cluster(
        [a_node_facts(labels={ZONE: "a"})], [a_pod_info(node="node", affinity=APART)]
    )
    assert [dict(counts) for _, counts in cluster.terms.anti_affinity.items()] == [{"a": 1}]

    cluster.set_node(a_node_facts(labels={ZONE: "b"}))
    assert [dict(counts) for _, counts in cluster.terms.anti_affinity.items()] == [{"b": 1}]

    cluster.remove_node("node")
    assert not cluster.terms.anti_affinity
