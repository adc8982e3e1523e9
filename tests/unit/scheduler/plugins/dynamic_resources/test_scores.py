"""Scores of nodes: alternatives first (KEP-4816), then readiness (KEP-5007)."""

from __future__ import annotations

import pytest

from allot.api.slices import Device, ResourcePool
from allot.features import DEFAULTS, FeatureGates
from allot.rules import READY_DEVICES_FIRST
from allot.scheduler.core.decisions import Chosen
from allot.scheduler.core.scheduling_cycle import SchedulingCycle
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.plugins.dynamic_resources.filter_results import DynamicResourcesArgs
from allot.scheduler.plugins.dynamic_resources.scores import normalized_scores, raw_score
from allot.testing.builders import (
    a_device,
    a_request,
    a_slice,
    an_alternative,
)
from tests.unit.scheduler.plugins.dynamic_resources.claims import a_pod_with_claims, a_stored_claim
from tests.unit.scheduler.plugins.dynamic_resources.plugin_fixture import Bench
from tests.unit.scheduler.state.objects import a_node_facts

POD = a_pod_with_claims("claim")


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param("8r 8w", [200, 100], id="equal-alternatives"),
        pytest.param("0r 0w", [100, 0], id="no-alternatives"),
        pytest.param("8w 7r", [100, 50], id="a-better-alternative-counts-more"),
        pytest.param("8r 8w 7r 7w", [150, 100, 50, 0], id="both"),
        pytest.param("8r 7r 1r", [100, 85, 0], id="all-ready"),
        pytest.param("8w 7w", [100, 0], id="none-ready"),
        pytest.param("16w 15r 14r", [100, 75, 25], id="less-than-the-smallest-step"),
    ],
)
def test_normalized_scores(nodes: str, expected: list[int]) -> None:
    raw = [raw_score(int(node[:-1]), is_ready=node[-1] == "r") for node in nodes.split()]

    assert normalized_scores(raw, ranks_readiness=True) == expected


def test_readiness_counts_for_nothing_where_it_is_switched_off() -> None:
    raw = [raw_score(8, is_ready=False), raw_score(8, is_ready=True)]

    assert normalized_scores(raw, ranks_readiness=False) == [100, 100]


# --- in a cycle ---


def slow(name: str) -> Device:
    return a_device(name, binding_conditions=("Attached",), binding_failure_conditions=("Failed",))


def fabric_and_one_plain_device(
    nodes: int,
    *,
    gates: FeatureGates = DEFAULTS,
    args: DynamicResourcesArgs = DynamicResourcesArgs(),  # noqa: B008 - immutable
) -> tuple[Bench, str]:
    """A fabric that serves all nodes, and a device that only the last node has."""
    last = f"node-{nodes - 1:03}"
    bench = Bench(
        a_stored_claim(),
        nodes=[a_node_facts(f"node-{number:03}") for number in range(nodes)],
        slices=[
            a_slice(
                slow("fabric-0"),
                name="fabric",
                node_name=None,
                all_nodes=True,
                pool=ResourcePool("fabric", 1, 1),
            ),
            a_slice(a_device("plain"), name="plain", node=last),
        ],
        gates=gates,
        args=args,
    )
    return bench, last


def chosen(bench: Bench) -> str:
    cycle = SchedulingCycle(Profile("default-scheduler", [bench.plugin]), bench.cluster)
    decision = cycle.decide(POD)
    assert isinstance(decision, Chosen)
    return decision.node_name


@pytest.mark.parametrize("nodes", [3, 301])
def test_the_node_with_a_device_that_is_ready_is_chosen(nodes: int) -> None:
    bench, last = fabric_and_one_plain_device(nodes)

    assert chosen(bench) == last


def test_with_the_rules_of_kubernetes_readiness_does_not_count() -> None:
    gates = DEFAULTS.switched({READY_DEVICES_FIRST: False})
    bench, _ = fabric_and_one_plain_device(3, gates=gates)

    assert chosen(bench) == "node-000"


def test_the_configuration_can_switch_it_off() -> None:
    args = DynamicResourcesArgs(prefers_ready_devices=False)
    bench, _ = fabric_and_one_plain_device(3, args=args)

    assert chosen(bench) == "node-000"


def test_a_better_alternative_counts_more_than_readiness() -> None:
    alternatives = (an_alternative("two", count=2), an_alternative("one"))
    bench = Bench(
        a_stored_claim("claim", a_request("r", first_available=alternatives)),
        nodes=[a_node_facts("one"), a_node_facts("two")],
        slices=[
            a_slice(a_device("a"), name="one", node="one"),
            a_slice(slow("b"), slow("c"), name="two", node="two"),
        ],
    )

    assert chosen(bench) == "two"


def test_where_no_device_has_conditions_a_sample_of_nodes_is_enough() -> None:
    nodes = [a_node_facts(f"node-{number:03}") for number in range(301)]
    bench = Bench(a_stored_claim(), nodes=nodes)
    cycle = SchedulingCycle(Profile("default-scheduler", [bench.plugin]), bench.cluster)

    decision = cycle.decide(POD)

    assert isinstance(decision, Chosen)
    assert decision.feasible == 144


def test_conditions_that_are_gone_count_no_longer() -> None:
    bench, _ = fabric_and_one_plain_device(3)
    before = bench.devices.has_binding_conditions

    bench.devices.put_slice(
        a_slice(
            a_device("fabric-0"),
            name="fabric",
            node_name=None,
            all_nodes=True,
            pool=ResourcePool("fabric", 1, 1),
        )
    )

    assert (before, bench.devices.has_binding_conditions) == (True, False)
    assert chosen(bench) == "node-000"
