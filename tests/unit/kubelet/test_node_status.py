"""What a simulated node says about itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from allot.api.core import Node
from allot.kubelet.addresses import NODE_NETWORK, pick_address
from allot.kubelet.node_status import (
    address_of,
    heartbeat_age,
    is_offline,
    missing_labels,
    new_lease,
    status_after,
    taints_to_keep,
)
from allot.kubelet.settings import KubeletSettings
from allot.testing.builders import a_node

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OWN = {"key": "example.com/own", "effect": "NoSchedule"}


def with_status(node: Node, now: datetime = NOW) -> Node:
    status = status_after(node, "172.16.0.9", KubeletSettings(), now)
    assert status is not None
    return node.with_value(status, "status")


def test_an_empty_node_gets_everything_once() -> None:
    node = with_status(a_node("n", uid="u"))

    assert node.has_condition("Ready")
    assert address_of(node) == "172.16.0.9"
    assert node.get("status", "capacity") == node.get("status", "allocatable")
    assert node.get("status", "capacity", "pods") == "110"
    assert node.get("status", "nodeInfo", "containerRuntimeVersion").startswith("simulated://")
    types = {condition["type"] for condition in node.get("status", "conditions")}
    assert types == {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}
    assert status_after(node, "172.16.0.9", KubeletSettings(), NOW + timedelta(seconds=200)) is None


def test_capacity_set_by_others_is_kept() -> None:
    node = with_status(a_node("n", status={"capacity": {"cpu": "64", "example.com/x": "2"}}))

    assert node.get("status", "capacity", "cpu") == "64"
    assert node.get("status", "allocatable", "example.com/x") == "2"
    assert node.get("status", "allocatable", "memory") == "32Gi"


def test_capacity_defaults_to_allocatable() -> None:
    node = with_status(a_node("n", status={"allocatable": {"cpu": "3"}}))

    assert node.get("status", "capacity", "cpu") == "3"


def test_a_heartbeat_is_repeated_but_nothing_has_changed_since() -> None:
    before = with_status(a_node("n", uid="u"))
    later = NOW + timedelta(seconds=301)

    node = with_status(before, later)

    (ready,) = [c for c in node.get("status", "conditions") if c["type"] == "Ready"]
    assert ready["lastHeartbeatTime"] == "2026-01-01T00:05:01Z"
    assert ready["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert heartbeat_age(node, later) == 0


def test_a_node_that_was_given_up_comes_back() -> None:
    node = with_status(a_node("n", uid="u"))
    unknown = [c | {"status": "Unknown"} for c in node.get("status", "conditions")]
    other = {"type": "NetworkUnavailable", "status": "False"}
    lost = node.with_value([*unknown, other], "status", "conditions")
    assert not lost.has_condition("Ready")

    found = with_status(lost, NOW + timedelta(seconds=60))

    assert found.has_condition("Ready")
    assert other in found.get("status", "conditions")
    (ready,) = [c for c in found.get("status", "conditions") if c["type"] == "Ready"]
    assert ready["lastTransitionTime"] == "2026-01-01T00:01:00Z"


@pytest.mark.parametrize(
    ("ready", "taints", "kept"),
    [
        pytest.param("True", [NOT_READY, OWN], [OWN], id="stale"),
        pytest.param("True", [OWN], None, id="none-of-ours"),
        pytest.param("True", [], None, id="none"),
        pytest.param("False", [NOT_READY], None, id="still-true"),
    ],
)
def test_only_taints_that_no_longer_hold_are_taken_away(
    ready: str, taints: list[dict[str, str]], kept: list[dict[str, str]] | None
) -> None:
    node = a_node("n", status={"conditions": [{"type": "Ready", "status": ready}]})

    assert taints_to_keep(node.with_value(taints, "spec", "taints")) == kept


def test_labels_that_are_there_stay() -> None:
    node = a_node("n", labels={"kubernetes.io/hostname": "other", "kubernetes.io/arch": "arm64"})

    assert missing_labels(node) == {"kubernetes.io/os": "linux"}


def test_the_lease_belongs_to_the_node() -> None:
    lease = new_lease(a_node("n", uid="u"), KubeletSettings(), NOW)

    assert lease["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert lease["spec"] == {
        "holderIdentity": "n",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-01T00:00:00.000000Z",
    }


def test_offline() -> None:
    assert is_offline(a_node("n", metadata={"annotations": {"allot.dev/offline": "true"}}))
    assert not is_offline(a_node("n", metadata={"annotations": {"allot.dev/offline": "false"}}))


def test_addresses_are_always_the_same_and_never_shared() -> None:
    taken: set[str] = set()
    for number in range(300):
        address = pick_address(f"n{number}", NODE_NETWORK, taken.__contains__)
        assert address not in taken
        taken.add(address)

    assert pick_address("n0", NODE_NETWORK, lambda _: False) in taken
    first = pick_address("n0", NODE_NETWORK, lambda _: False)
    assert pick_address("n0", NODE_NETWORK, {first}.__contains__) != first
