"""Scores beyond Kubernetes rank nodes; which pods fit does not depend on them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.questions.simulation import simulate
from allot.questions.simulation_figures import SimulationAnswer
from allot.scheduler.configuration import SchedulerConfiguration, read_configuration
from allot.scheduler.plugins.device_scores.device_usage import NodeUsage, Unit, UnitUsage
from allot.scheduler.plugins.device_scores.measures import lost_room, stranded_devices, utilisation
from allot.scheduler.plugins.device_scores.plugins import lowest_is_best
from allot.scheduler.plugins.registry import PluginRegistry
from allot.testing.builders import (
    a_claim,
    a_class,
    a_device,
    a_node,
    a_pod,
    a_request,
    a_slice,
    an_allocation,
    an_exact_request,
)
from allot.testing.observed_clusters import a_claim_template, observed

PLUGINS = ("DevicePacking", "DeviceSpreading", "LeastFragmentation", "LeastStrandedCapacity")
shares = st.integers(0, 8).map(lambda number: number / 8)


def configuration(plugin: str) -> SchedulerConfiguration:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": plugin}]}}}],
    }
    return read_configuration(document, PluginRegistry())


@st.composite
def clusters(draw: st.DrawFn) -> list[Any]:
    """Up to four nodes with up to four devices, some of them held, and one pod."""
    objects: list[Any] = [a_class()]
    for number in range(draw(st.integers(1, 4))):
        node = f"node-{number}"
        amounts = {"cpu": str(draw(st.integers(1, 8))), "memory": "8Gi", "pods": "10"}
        objects.append(a_node(node, status={"capacity": amounts, "allocatable": amounts}))
        names = [f"gpu-{index}" for index in range(draw(st.integers(1, 4)))]
        objects.append(a_slice(*map(a_device, names), name=node, node=node))
        held = draw(st.lists(st.sampled_from(names), unique=True))
        if held:
            allocation = an_allocation(*held, pool=node)
            objects.append(a_claim(name=f"held-{node}", allocation=allocation))
    wanted = a_request(exactly=an_exact_request(count=draw(st.integers(1, 4))))
    objects.append(a_claim_template("wanted", wanted))
    claim = {"name": "gpu", "resourceClaimTemplateName": "wanted"}
    requests = {"cpu": str(draw(st.integers(0, 8)))}
    objects.append(
        a_pod(
            containers=[{"name": "main", "resources": {"requests": requests}}],
            resourceClaims=[claim] if draw(st.booleans()) else [],
        )
    )
    return objects


def answer_of(objects: list[Any], plugin: str = "") -> SimulationAnswer:
    given = configuration(plugin) if plugin else None
    return simulate(observed(*objects, configuration=given)).answer


@pytest.mark.parametrize("plugin", PLUGINS)
@settings(max_examples=25)
@given(clusters())
def test_scores_never_change_feasibility(plugin: str, objects: list[Any]) -> None:
    """The pod fits if and only if it fits without the plugin, and for the same reason if not."""
    without, scored = answer_of(objects), answer_of(objects, plugin)

    assert [each.pod for each in scored.placed] == [each.pod for each in without.placed]
    assert scored.pending == without.pending


# --- measures ---


@st.composite
def usages(draw: st.DrawFn) -> NodeUsage:
    units = []
    for _ in range(draw(st.integers(0, 6))):
        before = draw(shares)
        after = draw(shares.map(partial(max, before)))
        group = draw(
            st.sampled_from([frozenset(), frozenset({("root", "a")}), frozenset({("root", "b")})])
        )
        driver = draw(st.sampled_from(["gpu", "nic"]))
        units.append(Unit(driver, UnitUsage(before), UnitUsage(after), group))
    return NodeUsage(tuple(units), frozenset({"gpu"}))


@given(usages(), shares, shares)
def test_measures(usage: NodeUsage, less: float, more: float) -> None:
    assert 0.0 <= utilisation(usage) <= 1.0
    assert lost_room(usage) >= 0.0
    unchanged = usage._replace(
        units=tuple(each._replace(after=each.before) for each in usage.units)
    )
    assert lost_room(unchanged) == 0.0
    less, more = sorted((less, more))
    assert stranded_devices(usage, less) >= stranded_devices(usage, more) >= 0.0


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1))
def test_normalized_scores_keep_the_order(scores: list[int]) -> None:
    raw = list(scores)

    lowest_is_best(scores)

    assert all(0 <= score <= 100 for score in scores)
    assert scores[raw.index(min(raw))] == 100
    ranked = [score for _, score in sorted(zip(raw, scores, strict=True))]
    assert ranked == sorted(ranked, reverse=True)
