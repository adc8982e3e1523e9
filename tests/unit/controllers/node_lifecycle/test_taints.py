"""Taints that follow a node's conditions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from allot.api.core import Node
from allot.controllers.node_lifecycle.taints import NoExecuteTaint, with_taints

TODAY = datetime(2026, 1, 1, tzinfo=UTC)
PREFIX = "node.kubernetes.io/"


def a_node(
    conditions: dict[str, str], taints: tuple[tuple[str, str], ...] = (), cordoned: bool = False
) -> Node:
    spec: dict[str, Any] = {"unschedulable": cordoned}
    if taints:
        spec["taints"] = [{"key": key, "effect": effect, "value": "v"} for key, effect in taints]
    found = [{"type": type_, "status": status} for type_, status in conditions.items()]
    return Node({"metadata": {"name": "n"}, "spec": spec, "status": {"conditions": found}})


def names(node: Node) -> set[str]:
    return {f"{taint['key'].removeprefix(PREFIX)}:{taint['effect']}" for taint in node.taints}


ADD, REMOVE, KEEP = NoExecuteTaint.ADD, NoExecuteTaint.REMOVE, NoExecuteTaint.KEEP
NOT_READY = f"{PREFIX}not-ready"
UNREACHABLE = f"{PREFIX}unreachable"


@pytest.mark.parametrize(
    ("node", "evicting", "wanted"),
    [
        pytest.param(a_node({"Ready": "True"}), REMOVE, set(), id="ready"),
        pytest.param(a_node({"Ready": "False"}), REMOVE, {"not-ready:NoSchedule"}, id="not-ready"),
        pytest.param(
            a_node({"Ready": "Unknown"}),
            ADD,
            {"unreachable:NoSchedule", "unreachable:NoExecute"},
            id="unreachable",
        ),
        pytest.param(
            a_node({"Ready": "True", "MemoryPressure": "True", "PIDPressure": "True"}),
            REMOVE,
            {"memory-pressure:NoSchedule", "pid-pressure:NoSchedule"},
            id="pressure",
        ),
        pytest.param(
            a_node({"DiskPressure": "Unknown", "NetworkUnavailable": "True"}, cordoned=True),
            KEEP,
            {"network-unavailable:NoSchedule", "unschedulable:NoSchedule"},
            id="network-and-cordon",
        ),
        pytest.param(
            a_node(
                {"Ready": "True"}, ((NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute"), ("a", "b"))
            ),
            REMOVE,
            {"a:b"},
            id="ready-again",
        ),
        pytest.param(
            a_node({"Ready": "Unknown"}, ((NOT_READY, "NoExecute"),)),
            ADD,
            {"unreachable:NoSchedule", "unreachable:NoExecute"},
            id="from-not-ready-to-unreachable",
        ),
        pytest.param(
            a_node({"Ready": "Unknown"}, ((UNREACHABLE, "NoExecute"),)),
            KEEP,
            {"unreachable:NoSchedule", "unreachable:NoExecute"},
            id="no-word-on-eviction",
        ),
        pytest.param(
            a_node({}, ((NOT_READY, "NoSchedule"),)), KEEP, set(), id="no-condition-no-taint"
        ),
        pytest.param(
            a_node({"Ready": "False"}, ((NOT_READY, "NoSchedule"),)),
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
    node = a_node({"Ready": "False"}, ((NOT_READY, "NoExecute"), ("other", "NoSchedule")))
    changed = with_taints(node, ADD, TODAY)
    assert changed.taints[:2] == node.taints
