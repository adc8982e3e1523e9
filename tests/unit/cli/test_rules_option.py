"""`--rules`: whose answers a command gives, and that it says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from allot.cli.cluster_options import ClusterOptions
from allot.cli.cluster_processes import api_server_command, other_commands
from allot.cli.errors import CommandError
from allot.cli.gate_options import gates_from_option
from allot.cli.main import allot
from allot.cli.scheduler_configuration import load_configuration
from allot.cli.snapshots import SnapshotSource, rules_of_cluster
from allot.client.snapshot import Snapshot
from allot.features import FRACTIONAL_CAPACITY_RANGE
from allot.rules import RULES, RuleSet
from allot.testing.cluster import ClusterSettings
from tests.unit.cli.test_allocate import DRIVER, a_scenario

COMMANDS = [
    "up",
    "apiserver",
    "scheduler",
    "controller-manager",
    "explain",
    "lint",
    "status",
    "allocate",
    "validate",
    "cel",
]


def run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(allot, arguments, input=given, standalone_mode=False)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_decides_takes_rules(command: str) -> None:
    assert "--rules [seeds|v1.38]" in run(command, "--help").output


@pytest.mark.parametrize(
    ("asked", "in_force"),
    [(None, RuleSet.SEEDS), (RuleSet.SEEDS, RuleSet.SEEDS), (RuleSet.V1_38, RuleSet.V1_38)],
)
def test_rules_and_gates_come_from_one_place(asked: RuleSet | None, in_force: RuleSet) -> None:
    gates = gates_from_option("", asked)

    assert all((name in gates) == (in_force is RuleSet.SEEDS) for name in RULES)


def test_a_gate_that_is_asked_for_goes_before_a_rule() -> None:
    gates = gates_from_option(f"{FRACTIONAL_CAPACITY_RANGE}=true", RuleSet.V1_38)
    assert FRACTIONAL_CAPACITY_RANGE in gates
    assert FRACTIONAL_CAPACITY_RANGE in gates.with_rules(RuleSet.V1_38)
    assert FRACTIONAL_CAPACITY_RANGE not in gates_from_option("", RuleSet.V1_38)
    assert FRACTIONAL_CAPACITY_RANGE not in gates_from_option("").with_rules(RuleSet.V1_38)
    assert gates_from_option("", RuleSet.V1_38).with_rules(RuleSet.SEEDS) == gates_from_option("")


# --- the scheduler's configuration ---


def a_configuration(directory: Path, **fields: Any) -> Path:
    path = directory / "config.json"
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path.write_text(json.dumps(head | fields))
    return path


def test_the_configuration_says_it_and_the_command_line_goes_before(tmp_path: Path) -> None:
    path = a_configuration(tmp_path, rules="v1.38")

    assert load_configuration(path).rules is RuleSet.V1_38
    assert load_configuration(path, RuleSet.SEEDS).rules is RuleSet.SEEDS
    assert load_configuration(None).rules is None


def test_unknown_rules_in_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"rules: 'v2' is not one of seeds, v1\.38"):
        load_configuration(a_configuration(tmp_path, rules="v2"))


def test_separate_components_get_the_same_rules(tmp_path: Path) -> None:
    asked = ClusterOptions(
        tmp_path, 0, "memory", (), None, "", RuleSet.V1_38, "*", True, True, False, "", 0
    )
    assert ClusterOptions.from_json(asked.to_json()) == asked
    commands = [api_server_command(asked), *other_commands(asked)]

    for command in commands:
        said = "--rules v1.38" in " ".join(command.arguments)
        assert said == (command.name != "nodes")


# --- questions ---


@pytest.mark.parametrize(
    ("files", "version", "rules"),
    [
        pytest.param(("x.yaml",), "", RuleSet.SEEDS, id="files"),
        pytest.param((), "v1.38.0+allot.0.1", RuleSet.SEEDS, id="our-server"),
        pytest.param((), "v1.38.2", RuleSet.V1_38, id="kubernetes"),
        pytest.param((), "", RuleSet.V1_38, id="a-server-that-does-not-say-it"),
    ],
)
def test_questions_about_clusters(files: tuple[str, ...], version: str, rules: RuleSet) -> None:
    snapshot = Snapshot()
    snapshot.server_version = version

    assert rules_of_cluster(snapshot, SnapshotSource(files), None) is rules
    assert rules_of_cluster(snapshot, SnapshotSource(files), RuleSet.SEEDS) is RuleSet.SEEDS


def test_allot_testing() -> None:
    assert not any(name in ClusterSettings(rules="v1.38").gates for name in RULES)
    assert all(name in ClusterSettings().gates for name in RULES)


SLICE = Path(__file__).parents[3] / "examples" / "base"


@pytest.mark.parametrize("rules", ["seeds", "v1.38"])
def test_status_says_whose_answers_they_are(rules: str) -> None:
    result = run("status", "-f", str(SLICE), "-o", "json", "--rules", rules)

    assert json.loads(result.output)["rules"] == rules


# --- vectors ---


def shared_to_dedicated() -> str:
    scenario = a_scenario()
    result = {"request": "r", "driver": DRIVER, "pool": "node-1", "device": "gpu-0", "shareID": "s"}
    scenario["allocated"] = [
        {
            "metadata": {"name": "other", "namespace": "default"},
            "status": {"allocation": {"devices": {"results": [result]}}},
        }
    ]
    return json.dumps(scenario)


@pytest.mark.parametrize(
    ("options", "device", "said"),
    [
        ((), "gpu-0", None),
        (("--rules", "v1.38"), "gpu-0", None),
        (("--rules", "seeds"), "gpu-1", "seeds"),
    ],
)
def test_allocate(options: tuple[str, ...], device: str, said: str | None) -> None:
    answer = json.loads(run("allocate", *options, given=shared_to_dedicated()).output)

    assert answer["result"][0]["devices"]["results"][0]["device"] == device
    assert answer.get("rules") == said


DERIVED_WHILE_OFF = {
    "gvk": "resource.k8s.io/v1/ResourceClaim",
    "operation": "create",
    "features": {"DRADerivedAttributes": False},
    "object": {
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "r",
                        "exactly": {
                            "deviceClassName": "gpu",
                            "allocationMode": "ExactCount",
                            "count": 1,
                            "derivedAttributes": [{"name": "a.b/c", "expression": "device.driver"}],
                        },
                    }
                ],
                "constraints": [{"matchAttribute": "a.b/c"}],
            }
        },
    },
}


@pytest.mark.parametrize(
    ("options", "errors", "said"),
    [
        ((), [], None),
        (("--rules", "v1.38"), [], None),
        (("--rules", "seeds"), ["Forbidden"], "seeds"),
    ],
)
def test_validate(options: tuple[str, ...], errors: list[str], said: str | None) -> None:
    given = json.dumps(DERIVED_WHILE_OFF)
    answer = json.loads(run("validate", "--jsonl", *options, given=given).output)

    assert [error["type"] for error in answer["errors"]] == errors
    assert answer.get("rules") == said


def test_cel() -> None:
    said = json.loads(run("cel", "--jsonl", "--rules", "seeds", given="{}").output)["rules"]

    assert said == "seeds"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("", [], id="defaults"),
        pytest.param("DRAResourcePoolStatus=true", [], id="implemented"),
        pytest.param(
            "DRANodeAllocatableResources=true",
            ["DRANodeAllocatableResources"],
            id="node-allocatable-resources",
        ),
        pytest.param(
            "GenericWorkload=true,DRAWorkloadResourceClaims=true",
            ["DRAWorkloadResourceClaims", "GenericWorkload"],
            id="workloads",
        ),
        pytest.param("DRANodeAllocatableResources=false", [], id="off"),
    ],
)
def test_gates_without_implementation_are_named(
    text: str, named: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    gates_from_option(text)

    warnings = capsys.readouterr().err.splitlines()
    assert [line.split()[3] for line in warnings] == named
    assert all("does not implement it" in line for line in warnings)
