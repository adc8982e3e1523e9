"""Feature gates and rules of a cluster: as its components say, or what is assumed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from allot import features
from allot.cli.cluster_gates import gates_of_cluster
from allot.cli.errors import CommandError
from allot.cli.snapshots import SnapshotSource
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.server_gates import API_SERVER, SCHEDULER, ServerGates, read_server_gates
from allot.client.snapshot import Snapshot
from allot.exposition import show_gates
from allot.features import (
    BINDING_CONDITIONS,
    CONSUMABLE_CAPACITY,
    DERIVED_ATTRIBUTES,
    DYNAMIC_RESOURCE_ALLOCATION,
    FRACTIONAL_CAPACITY_RANGE,
    FeatureGates,
)
from allot.rules import SKIP_MISSING_CLASSES, RuleSet

CLUSTER = SnapshotSource()


def metrics(gates: FeatureGates) -> bytes:
    registry = CollectorRegistry()
    show_gates(gates, registry)
    return generate_latest(registry)


class Pages:
    """A client that has only these pages."""

    def __init__(self, pages: dict[str, bytes]) -> None:
        self._pages = pages

    async def request(self, method: str, path: str, **_: Any) -> Any:
        if path not in self._pages:
            raise ApiStatusError(403, "Forbidden", f"{path} is forbidden")
        return type("Response", (), {"body": self._pages[path]})


def read(pages: dict[str, bytes]) -> ServerGates:
    client: Any = Pages(pages)
    assert not isinstance(client, Client)
    return asyncio.run(read_server_gates(client, (SCHEDULER, API_SERVER)))


def snapshot(gates: ServerGates, version: str = "v1.38.0+allot.1") -> Snapshot:
    found = Snapshot()
    found.gates, found.server_version = gates, version
    return found


OFF = features.with_overrides({DERIVED_ATTRIBUTES: False})


def test_the_scheduler_goes_before_the_server() -> None:
    told = read({SCHEDULER: metrics(OFF), API_SERVER: metrics(features.DEFAULTS)})

    assert (told.component, told.rules) == ("scheduler", RuleSet.SEEDS)
    assert told.states[BINDING_CONDITIONS]
    assert not told.states[DERIVED_ATTRIBUTES]


def test_the_server_if_there_is_no_other() -> None:
    told = read({API_SERVER: metrics(OFF.with_rules(RuleSet.V1_38))})

    assert (told.component, told.rules) == ("API server", RuleSet.V1_38)


@pytest.mark.parametrize(
    ("pages", "why"),
    [
        pytest.param({}, "/metrics is forbidden", id="forbidden"),
        pytest.param(
            {API_SERVER: b"up 1\n"}, "the metrics of the API server do not show them", id="no-gates"
        ),
        pytest.param(
            {API_SERVER: b"kubernetes_feature_enabled{\n"},
            "/metrics has no metrics",
            id="no-metrics",
        ),
    ],
)
def test_gates_that_cannot_be_read(pages: dict[str, bytes], why: str) -> None:
    told = read(pages)

    assert not told.component
    assert why in told.unread


def test_what_the_cluster_says_counts() -> None:
    known = gates_of_cluster(snapshot(read({SCHEDULER: metrics(OFF)})), CLUSTER, "", None)

    assert (known.gates, known.source, known.assumption) == (OFF, "scheduler", "")
    assert known.rules is RuleSet.SEEDS


def test_rules_are_those_of_the_cluster_unless_the_command_line_says_others() -> None:
    told = snapshot(read({SCHEDULER: metrics(OFF.with_rules(RuleSet.V1_38))}))

    assert SKIP_MISSING_CLASSES not in gates_of_cluster(told, CLUSTER, "", None).gates
    asked = gates_of_cluster(told, CLUSTER, "", RuleSet.SEEDS)
    assert SKIP_MISSING_CLASSES in asked.gates
    assert asked.rules is RuleSet.SEEDS


def test_the_command_line_changes_single_gates() -> None:
    told = snapshot(read({SCHEDULER: metrics(OFF)}))

    known = gates_of_cluster(told, CLUSTER, f"{BINDING_CONDITIONS}=false", None)
    all_alpha = gates_of_cluster(told, CLUSTER, "AllAlpha=true,GenericWorkload=false", None)

    assert known.gates == OFF.switched({BINDING_CONDITIONS: False})
    assert DERIVED_ATTRIBUTES in all_alpha.gates
    with pytest.raises(CommandError, match="needs DRAConsumableCapacity"):
        gates_of_cluster(told, CLUSTER, f"{CONSUMABLE_CAPACITY}=false", None)


def test_gates_that_a_component_does_not_know() -> None:
    """Those of older features are on for good, those of newer ones are not there."""
    told = snapshot(ServerGates("API server", {CONSUMABLE_CAPACITY: True}), "v1.38.0")

    known = gates_of_cluster(told, CLUSTER, "", None)

    assert DYNAMIC_RESOURCE_ALLOCATION in known.gates
    assert CONSUMABLE_CAPACITY in known.gates
    assert DERIVED_ATTRIBUTES not in known.gates
    assert FRACTIONAL_CAPACITY_RANGE not in known.gates


@pytest.mark.parametrize(
    ("version", "option", "gates", "whose"),
    [
        ("v1.38.0+allot.1", "", features.DEFAULTS, "allot's defaults"),
        (
            "v1.38.0+allot.1",
            f"{DERIVED_ATTRIBUTES}=false",
            OFF,
            "allot's defaults with those of --feature-gates",
        ),
        ("v1.38.0", "", features.KUBERNETES_DEFAULTS, "the defaults of Kubernetes v1.38"),
    ],
)
def test_what_is_assumed_is_said(
    version: str, option: str, gates: FeatureGates, whose: str
) -> None:
    known = gates_of_cluster(snapshot(read({}), version), CLUSTER, option, None)

    assert (known.gates, known.source) == (gates, "defaults")
    assert known.assumption == (
        "feature gates of the cluster could not be read (/metrics is forbidden);"
        f" assumed are {whose}"
    )


def test_files_have_defaults() -> None:
    known = gates_of_cluster(Snapshot(), SnapshotSource(("-",)), "", None)

    assert (known.gates, known.source, known.assumption) == (features.DEFAULTS, "defaults", "")
