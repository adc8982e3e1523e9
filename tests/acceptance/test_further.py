"""Scenarios of our own on `allot up`: further rules of each KEP, and what clients of the API rely on.

What they expect is what Kubernetes answers, except in `kep-only`: there it is what only the KEPs say. They need minutes
together, so the gate leaves them out. Some end so only under the rules of v1.38, or with components of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

import pytest

from tests.acceptance.conftest import MAX_WAIT_SECONDS
from tests.acceptance.playing import failures
from tests.acceptance.runner.acceptance import open_runner
from tests.acceptance.runner.scenarios import SCENARIOS, Scenario, read_scenarios
from tests.acceptance.scenarios_by_rule import (
    FURTHER_OTHERWISE_BY_RULE,
    OFF_OTHERWISE_BY_RULE,
    TWO_WRITES,
)
from tests.acceptance.server_process import FEATURE_GATES, running_cluster

GATES_OFF = ",".join(
    f"{gate}=false"
    for gate in (
        "DRAConsumableCapacity",
        "DRADerivedAttributes",
        "DRADeviceBindingConditions",
        "DRADeviceCompatibilityGroups",
        "DRADeviceTaintRules",
        "DRADeviceTaints",
        "DRAFractionalCapacityRange",
        "DRAListTypeAttributes",
        "DRAPartitionableDevices",
        "DRAPartitionableDevicesType",
        "DRAResourcePoolStatus",
    )
)
"""Everything that can be switched off and that one of the five KEPs, or what they stand on, brings."""


ALPHA = f"{FEATURE_GATES},DRADeviceCompatibilityGroups=true,DRAOptionalNodeOperations=true"
"""Gates that are off by default and that no other scenario needs."""


OTHERWISE_NAMES = frozenset(
    chain(TWO_WRITES, *FURTHER_OTHERWISE_BY_RULE.values(), *OFF_OTHERWISE_BY_RULE.values())
)


def files(directory: str, gates: str) -> list[object]:
    """Read by the tests themselves: to read them all takes longer than the gate should wait."""
    return [
        pytest.param(path, gates, id=path.name.removesuffix(".yaml.gz"))
        for path in sorted((SCENARIOS / directory).glob("*.yaml.gz"))
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "gates"),
    [*files("further", FEATURE_GATES), *files("alpha", ALPHA), *files("gates_off", GATES_OFF)],
)
def test_further_scenarios(path: Path, gates: str, tmp_path: Path, kubectl: Path | None) -> None:
    scenarios = (each for each in read_scenarios(path) if each.name not in OTHERWISE_NAMES)
    assert play(scenarios, tmp_path, kubectl, gates=gates) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("directory", "names_by_rule", "gates"),
    [
        pytest.param("further", FURTHER_OTHERWISE_BY_RULE, FEATURE_GATES, id="further"),
        pytest.param("gates_off", OFF_OTHERWISE_BY_RULE, GATES_OFF, id="gates-off"),
    ],
)
def test_further_scenarios_that_the_rules_of_the_keps_change(
    directory: str,
    names_by_rule: Mapping[str, tuple[str, ...]],
    gates: str,
    tmp_path: Path,
    kubectl: Path | None,
) -> None:
    scenarios = named(directory, frozenset(chain.from_iterable(names_by_rule.values())))

    assert play(scenarios, tmp_path, kubectl, "--rules", "v1.38", gates=gates) == []


@pytest.mark.slow
def test_further_scenarios_that_see_two_writes(tmp_path: Path, kubectl: Path | None) -> None:
    scenarios = named("further", frozenset(TWO_WRITES))

    assert play(scenarios, tmp_path, kubectl, "--separate", gates=FEATURE_GATES) == []


def named(directory: str, names: frozenset[str]) -> list[Scenario]:
    paths = sorted((SCENARIOS / directory).glob("*.yaml.gz"))
    found = [each for path in paths for each in read_scenarios(path) if each.name in names]
    assert {each.name for each in found} == names
    return found


def play(
    scenarios: Iterable[Scenario],
    directory: Path,
    kubectl: Path | None,
    *arguments: str,
    gates: str,
) -> list[str]:
    """Why some did not end well on `allot up` with these arguments."""
    runnable = [each for each in scenarios if kubectl or not each.needs_kubectl]
    with (
        running_cluster(directory, *arguments, gates=gates) as kubeconfig,
        open_runner(
            kubeconfig, kubectl=kubectl, simulate_nodes=True, patience=MAX_WAIT_SECONDS
        ) as runner,
    ):
        return failures(runner, runnable)


def test_no_further_file_is_missing() -> None:
    found = {path.name for path in SCENARIOS.glob("*/*.yaml.gz")}

    assert found == {
        f"{name}.yaml.gz"
        for name in (
            "4381-base-dra",
            "5007-binding-conditions",
            "5075-consumable-capacity",
            "5677-pool-status",
            "6080-derived-attributes",
            "api-machinery",
            "gates-off",
            "kep-only",
            "kubectl",
            "more-admin-access",
            "more-alpha",
            "more-api",
            "more-base",
            "more-crud",
            "more-device-status",
            "more-extended-resources",
            "more-kubectl",
            "more-lifecycle",
            "more-partitionable",
            "more-prioritized-list",
            "more-taints",
        )
    }
