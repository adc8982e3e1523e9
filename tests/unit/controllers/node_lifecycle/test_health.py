"""Signs of life, and what is said without them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from allot.api.core import Node
from allot.api.raw import RawObject
from allot.controllers.node_lifecycle.health import (
    Heartbeats,
    NodeHealth,
    heartbeats_of,
    observe,
    with_unknown_conditions,
)
from allot.testing.builders import a_node

TODAY = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
NOW = 1000.0


def a_node_with(*conditions: dict[str, Any]) -> Node:
    return a_node(conditions=conditions, metadata={"creationTimestamp": "2026-01-01T00:00:00Z"})


def a_condition(type_: str = "Ready", status: str = "True", **fields: str) -> dict[str, Any]:
    return {"type": type_, "status": status, "lastHeartbeatTime": "t1", **fields}


LEASE = RawObject({"spec": {"renewTime": "r1"}})


@pytest.mark.parametrize(
    ("node", "lease", "heartbeats"),
    [
        pytest.param(a_node_with(), None, Heartbeats(), id="nothing"),
        pytest.param(a_node_with(a_condition()), None, Heartbeats("t1"), id="heartbeat"),
        pytest.param(
            a_node_with(a_condition("MemoryPressure")), None, Heartbeats(), id="another-condition"
        ),
        pytest.param(a_node_with(a_condition()), LEASE, Heartbeats("t1", "r1"), id="both"),
        pytest.param(
            a_node_with(), RawObject({"spec": {}}), Heartbeats(None, ""), id="empty-lease"
        ),
    ],
)
def test_signs(node: Node, lease: RawObject | None, heartbeats: Heartbeats) -> None:
    assert heartbeats_of(node, lease) == heartbeats


@pytest.mark.parametrize(
    ("known", "heartbeats", "seen"),
    [
        pytest.param(None, Heartbeats("t1"), NodeHealth(Heartbeats("t1"), NOW), id="first-time"),
        pytest.param(
            None, Heartbeats(), NodeHealth(Heartbeats(), NOW - 60), id="silent-since-it-was-created"
        ),
        pytest.param(
            None, Heartbeats(None, "r"), NodeHealth(Heartbeats(None, "r"), NOW), id="only-a-lease"
        ),
        pytest.param(
            NodeHealth(Heartbeats("t1"), 5),
            Heartbeats("t1"),
            NodeHealth(Heartbeats("t1"), 5),
            id="nothing-new",
        ),
        pytest.param(
            NodeHealth(Heartbeats("t1"), 5),
            Heartbeats("t2"),
            NodeHealth(Heartbeats("t2"), NOW),
            id="heartbeat",
        ),
        pytest.param(
            NodeHealth(Heartbeats("t", "r1"), 5),
            Heartbeats("t", "r2"),
            NodeHealth(Heartbeats("t", "r2"), NOW),
            id="renewed",
        ),
        pytest.param(
            NodeHealth(Heartbeats("t", "r1"), 5),
            Heartbeats("t"),
            NodeHealth(Heartbeats("t", "r1"), 5),
            id="lease-deleted",
        ),
    ],
)
def test_what_counts_is_when_we_saw_a_change(
    known: NodeHealth | None, heartbeats: Heartbeats, seen: NodeHealth
) -> None:
    assert observe(known, a_node_with(), heartbeats, NOW, TODAY) == seen


def test_conditions_that_the_kubelet_reports_become_unknown() -> None:
    network = a_condition("NetworkUnavailable", "False")
    node = a_node_with(network, a_condition(extra="kept"), a_condition("DiskPressure", "Unknown"))
    lost = with_unknown_conditions(node, TODAY)
    by_type = {found["type"]: found for found in lost.get("status", "conditions")}
    assert by_type["NetworkUnavailable"] == network
    assert by_type["DiskPressure"] == a_condition("DiskPressure", "Unknown")
    assert by_type["Ready"] == {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastHeartbeatTime": "t1",
        "lastTransitionTime": "2026-01-01T00:01:00Z",
        "extra": "kept",
    }
    assert by_type["PIDPressure"] == {
        "type": "PIDPressure",
        "status": "Unknown",
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:01:00Z",
    }
    assert with_unknown_conditions(lost, TODAY) is lost
