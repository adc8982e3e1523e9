"""Scenarios of our own on `allot up`: further rules of each KEP, and what clients of the API rely on.

What they expect is what Kubernetes answers, except in `kep-only`: there it is what only the KEPs say. They need minutes
together, so the gate leaves them out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import MAX_WAIT_SECONDS
from tests.acceptance.playing import failures
from tests.acceptance.runner.acceptance import open_runner
from tests.acceptance.runner.scenarios import SCENARIOS, read_scenarios
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
    runnable = [each for each in read_scenarios(path) if kubectl or not each.needs_kubectl]
    with (
        running_cluster(tmp_path, gates=gates) as kubeconfig,
        open_runner(
            kubeconfig, kubectl=kubectl, simulate_nodes=True, patience=MAX_WAIT_SECONDS
        ) as runner,
    ):
        assert failures(runner, runnable) == []


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
