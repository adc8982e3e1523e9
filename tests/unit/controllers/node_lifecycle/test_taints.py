"""Taints that follow a node's conditions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from allot.api.core import Node
from allot.controllers.node_lifecycle.taints import NoExecuteTaint, with_taints
from allot.testing.builders import a_node

TODAY = datetime(2026, 1, 1, tzinfo=UTC)
PREFIX = "node.kubernetes.io/"


def with_conditions(conditions: dict[str, str], *taints: str, cordoned: bool = False) -> Node:
    return a_node(conditions=conditions, taints=taints, unschedulable=cordoned)


def names(node: Node) -> set[str]:
    return {f"{taint['key'].removeprefix(PREFIX)}:{taint['effect']}" for taint in node.taints}


ADD, REMOVE, KEEP = NoExecuteTaint.ADD, NoExecuteTaint.REMOVE, NoExecuteTaint.KEEP
NOT_READY = f"{PREFIX}not-ready"
UNREACHABLE = f"{PREFIX}unreachable"


@pytest.mark.parametrize(
    ("node", "evicting", "wanted"),
    [
        pytest.param(with_conditions({"Ready": "True"}), REMOVE, set(), id="ready"),
        pytest.param(
            with_conditions({"Ready": "False"}), REMOVE, {"not-ready:NoSchedule"}, id="not-ready"
        ),
        pytest.param(
            with_conditions({"Ready": "Unknown"}),
            ADD,
            {"unreachable:NoSchedule", "unreachable:NoExecute"},
            id="unreachable",
        ),
        pytest.param(
            with_conditions({"Ready": "True", "MemoryPressure": "True", "PIDPressure": "True"}),
            REMOVE,
            {"memory-pressure:NoSchedule", "pid-pressure:NoSchedule"},
            id="pressure",
        ),
        pytest.param(
            with_conditions(
                {"DiskPressure": "Unknown", "NetworkUnavailable": "True"}, cordoned=True
            ),
            KEEP,
            {"network-unavailable:NoSchedule", "unschedulable:NoSchedule"},
            id="network-and-cordon",
        ),
        pytest.param(
            with_conditions(
                {"Ready": "True"}, f"{NOT_READY}=v:NoSchedule", f"{NOT_READY}=v:NoExecute", "a=v:b"
            ),
            REMOVE,
            {"a:b"},
            id="ready-again",
        ),
        pytest.param(
            with_conditions({"Ready": "Unknown"}, f"{NOT_READY}=v:NoExecute"),
            ADD,
            {"unreachable:NoSchedule", "unreachable:NoExecute"},
            id="from-not-ready-to-unreachable",
        ),
        pytest.param(
            with_conditions({"Ready": "Unknown"}, f"{UNREACHABLE}=v:NoExecute"),
            KEEP,
            {"unreachable:NoSchedule", "unreachable:NoExecute"},
            id="no-word-on-eviction",
        ),
        pytest.param(
            with_conditions({}, f"{NOT_READY}=v:NoSchedule"),
            KEEP,
            set(),
            id="no-condition-no-taint",
        ),
        pytest.param(
            with_conditions({"Ready": "False"}, f"{NOT_READY}=v:NoSchedule"),
            REMOVE,
            {"not-ready:NoSchedule"},
            id="registered-as-not-ready",
        ),
    ],
)
def test_taints_follow(node: Node, evicting: NoExecuteTaint, wanted: set[str]) -> None:
    changed = with_taints(node, evicting, TODAY)
    assert names(changed) == wanted
    assert with_taints(changed, evicting, TODAY) is changed
    new = [taint for taint in changed.taints if taint not in node.taints]
    assert all(taint["timeAdded"] == "2026-01-01T00:00:00Z" for taint in new)


def test_taints_that_stay_are_left_alone() -> None:
    node = with_conditions({"Ready": "False"}, f"{NOT_READY}=v:NoExecute", "other=v:NoSchedule")
    changed = with_taints(node, ADD, TODAY)
    assert changed.taints[:2] == node.taints
