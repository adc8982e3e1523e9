"""Scenarios that pass on Kubernetes pass on `allot up`; some only under the rules of v1.38."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from tests.acceptance.conftest import MAX_WAIT_SECONDS
from tests.acceptance.playing import Endings, failures
from tests.acceptance.runner.acceptance import open_runner
from tests.acceptance.runner.scenarios import Scenario, load_scenarios
from tests.acceptance.scenarios_by_rule import OTHERWISE_BY_RULE
from tests.acceptance.server_process import running_cluster

SCENARIOS = load_scenarios()
OTHERWISE_NAMES = frozenset(chain.from_iterable(OTHERWISE_BY_RULE.values()))
KUBERNETES_RULES = ("--rules", "v1.38")
ALL = [each for file in SCENARIOS.values() for each in file]
PASSING = [each for each in ALL if each.name not in OTHERWISE_NAMES]
OTHERWISE = [each for each in ALL if each.name in OTHERWISE_NAMES]
EVERY_NODE = ("--all-nodes", "--complete-annotation", "accept.dev/complete")
"""The cluster plays the kubelets of all nodes, as the runner does otherwise."""


@pytest.mark.parametrize("scenario", [pytest.param(each, id=each.name) for each in PASSING])
def test_scenario(scenario: Scenario, endings: Endings, kubectl: Path | None) -> None:
    if scenario.needs_kubectl and kubectl is None:
        pytest.skip("there is no kubectl on this machine")
    reason = endings.wait_for(scenario)
    assert not reason, reason


def test_scenarios_that_the_rules_of_the_keps_change(tmp_path: Path, kubectl: Path | None) -> None:
    runnable = [each for each in OTHERWISE if kubectl or not each.needs_kubectl]
    with (
        running_cluster(tmp_path, *KUBERNETES_RULES) as kubeconfig,
        open_runner(
            kubeconfig, kubectl=kubectl, simulate_nodes=True, patience=MAX_WAIT_SECONDS
        ) as runner,
    ):
        assert failures(runner, runnable) == []


def test_every_scenario_runs_once() -> None:
    names = Counter(each.name for file in SCENARIOS.values() for each in file)

    assert names == Counter([*(each.name for each in PASSING), *OTHERWISE_NAMES])


def test_no_file_is_missing() -> None:
    assert {name: len(scenarios) for name, scenarios in SCENARIOS.items()} == {
        "4381-base-dra": 25,
        "4816-prioritized-list": 16,
        "5007-binding-conditions": 10,
        "5075-consumable-capacity": 20,
        "5677-pool-status": 14,
        "6080-derived-attributes": 12,
        "api-machinery": 26,
        "kubectl": 14,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("times", "arguments"),
    [
        pytest.param(3, EVERY_NODE, id="three-times-with-its-own-nodes"),
        pytest.param(3, (*EVERY_NODE, *KUBERNETES_RULES), id="three-times-with-the-rules-of-v1.38"),
        pytest.param(1, (*EVERY_NODE, "--separate"), id="in-separate-processes"),
        pytest.param(1, (*EVERY_NODE, "--storage", "memory"), id="in-memory"),
    ],
)
def test_all_scenarios(
    times: int, arguments: tuple[str, ...], tmp_path: Path, kubectl: Path | None
) -> None:
    scenarios = ALL if KUBERNETES_RULES[1] in arguments else PASSING
    runnable = [each for each in scenarios if kubectl or not each.needs_kubectl]
    with (
        running_cluster(tmp_path, *arguments) as kubeconfig,
        open_runner(
            kubeconfig, kubectl=kubectl, simulate_nodes=False, patience=MAX_WAIT_SECONDS
        ) as runner,
    ):
        for _ in range(times):
            assert failures(runner, runnable) == []
