from __future__ import annotations

from typing import Any

import pytest

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from allot.scheduler.plugins.image_locality import ImageLocality
from allot.scheduler.plugins.node_affinity import NodeAffinity
from allot.scheduler.plugins.node_resources_fit import NodeResourcesFit
from allot.scheduler.plugins.priority_sort import PrioritySort
from allot.scheduler.plugins.taint_toleration import TaintToleration
from tests.unit.scheduler.state.objects import (
    PREFERRED,
    a_cluster,
    a_container,
    a_node_facts,
    a_pod_info,
    on_node,
)

GPU = "example.com/gpu"
STATE = CycleState()
HALF = {"cpu": "2", "memory": "4Gi"}
QUARTER = {"cpu": "1", "memory": "2Gi"}
CURVE = {
    "type": "RequestedToCapacityRatio",
    "requestedToCapacityRatio": {
        "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    },
}
FALLING = {
    "type": "RequestedToCapacityRatio",
    "requestedToCapacityRatio": {
        "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
    },
}


@pytest.mark.parametrize(
    ("strategy", "requests", "used", "score"),
    [
        pytest.param({}, HALF, {}, 50, id="least-allocated-is-the-default"),
        pytest.param({}, QUARTER, HALF, 25, id="others-count"),
        pytest.param({}, {"cpu": "4", "memory": "2Gi"}, {}, 37, id="mean-of-cpu-and-memory"),
        pytest.param({}, {"cpu": "2", "memory": "8Gi"}, {"cpu": "3"}, 0, id="over-full-is-zero"),
        pytest.param({"type": "MostAllocated"}, QUARTER, HALF, 75, id="most-allocated"),
        pytest.param(
            {"type": "MostAllocated"}, {"cpu": "9", "memory": "9Gi"}, {}, 100, id="most-is-capped"
        ),
        pytest.param(CURVE, QUARTER, {}, 25, id="rising-curve"),
        pytest.param(FALLING, QUARTER, {}, 75, id="falling-curve"),
        pytest.param(
            {"resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}]},
            {"cpu": "4", "memory": "4Gi"},
            {},
            12,
            id="weights",
        ),
        pytest.param(
            {"type": "MostAllocated", "resources": [{"name": GPU, "weight": 1}]},
            {GPU: 1},
            {},
            50,
            id="extended",
        ),
        pytest.param(
            {"type": "MostAllocated", "resources": [{"name": GPU, "weight": 1}]},
            {},
            {GPU: 1},
            0,
            id="extended-counts-only-for-pods-that-want-it",
        ),
    ],
)
def test_resources_score(
    strategy: dict[str, Any], requests: dict[str, Any], used: dict[str, Any], score: int
) -> None:
    zero = {"cpu": "0", "memory": "0"}
    node = on_node(a_node_facts(allocatable={GPU: 2}), a_pod_info("other", zero | used))
    plugin = NodeResourcesFit({"scoringStrategy": strategy})

    assert score == plugin.score(STATE, a_pod_info(requests=zero | requests), node)


def test_pods_without_requests_still_make_a_node_fuller() -> None:
    plugin = NodeResourcesFit()
    crowded = on_node(a_node_facts(), *(a_pod_info(f"p{i}") for i in range(8)))

    assert plugin.score(STATE, a_pod_info(), crowded) < plugin.score(
        STATE, a_pod_info(), on_node(a_node_facts())
    )


def test_an_unknown_strategy_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="Wildest"):
        NodeResourcesFit({"scoringStrategy": {"type": "Wildest"}})


@pytest.mark.parametrize(
    ("requests", "args", "score"),
    [
        pytest.param(HALF, None, 100, id="even"),
        pytest.param({"cpu": "4", "memory": "0"}, None, 50, id="one-sided"),
        pytest.param({"cpu": "3", "memory": "4Gi"}, None, 87, id="a-little-uneven"),
        pytest.param(
            {"cpu": "4", "memory": "8Gi", GPU: 1},
            {"resources": [{"name": name, "weight": 1} for name in ("cpu", "memory", GPU)]},
            76,
            id="three-resources-by-standard-deviation",
        ),
    ],
)
def test_balanced_allocation(requests: dict[str, Any], args: Any, score: int) -> None:
    node = on_node(a_node_facts(allocatable={GPU: 2}))
    plugin = NodeResourcesBalancedAllocation(args)

    assert score == plugin.score(STATE, a_pod_info(requests=requests), node)


def test_balance_is_not_asked_for_pods_without_requests() -> None:
    plugin = NodeResourcesBalancedAllocation()

    assert plugin.pre_score(STATE, a_pod_info(), a_cluster(), []).is_skip
    assert plugin.pre_score(STATE, a_pod_info(requests=HALF), a_cluster(), []).is_success


def test_fewer_soft_taints_are_better() -> None:
    taints = ["a=1:PreferNoSchedule", "b=1:PreferNoSchedule"]
    nodes = [on_node(a_node_facts(f"n{i}", taints=taints[:i])) for i in range(3)]
    plugin, pod = TaintToleration(), a_pod_info()

    scores = [plugin.score(STATE, pod, node) for node in nodes]
    plugin.normalize(STATE, pod, nodes, scores)

    assert scores == [100, 50, 0]


def test_tolerations_for_other_effects_do_not_help_with_soft_taints() -> None:
    node = on_node(a_node_facts(taints=["a=1:PreferNoSchedule"]))
    tolerations = [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]

    assert TaintToleration().score(STATE, a_pod_info(tolerations=tolerations), node) == 1


def test_preferred_nodes_add_up() -> None:
    def preferring(key: str, weight: int) -> dict[str, Any]:
        term = {"matchExpressions": [{"key": key, "operator": "Exists"}]}
        return {"weight": weight, "preference": term}

    pod = a_pod_info(
        affinity={"nodeAffinity": {PREFERRED: [preferring("a", 10), preferring("b", 30)]}}
    )
    nodes = [
        on_node(a_node_facts(labels=labels))
        for labels in ({"a": "1", "b": "1"}, {"b": "1"}, {"a": "1"}, {})
    ]
    plugin = NodeAffinity()
    scores = [plugin.score(STATE, pod, node) for node in nodes]
    assert scores == [40, 30, 10, 0]

    plugin.normalize(STATE, pod, nodes, scores)

    assert scores == [100, 75, 25, 0]
    assert plugin.pre_score(STATE, a_pod_info(), a_cluster(), nodes).is_skip


def test_images_count_by_size_and_by_how_many_nodes_have_them() -> None:
    image = {"names": ["app:v1"], "sizeBytes": 1000 * 1024 * 1024}
    cluster = a_cluster([a_node_facts("with", status={"images": [image]}), a_node_facts("without")])
    pod = a_pod_info(containers=[a_container(image="app:v1")])
    plugin, state = ImageLocality(), CycleState()

    assert plugin.pre_score(state, pod, cluster, cluster.nodes).is_success
    # Half of the nodes have it, so half of it counts: (500 - 23) of (1000 - 23) megabytes.
    assert [plugin.score(state, pod, node) for node in cluster.nodes] == [48, 0]
    assert plugin.pre_score(state, a_pod_info(), cluster, cluster.nodes).is_skip


def test_important_pods_come_first_then_those_that_wait_longest() -> None:
    key = PrioritySort().sort_key
    waiting = [("late", 5, 2.0), ("low", 0, 0.0), ("early", 5, 1.0)]

    order = sorted(waiting, key=lambda one: key(a_pod_info(one[0], priority=one[1]), one[2]))

    assert [name for name, *_ in order] == ["early", "late", "low"]
