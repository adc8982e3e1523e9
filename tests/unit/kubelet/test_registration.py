"""Node objects from descriptions."""

from __future__ import annotations

from allot.api.core import Node
from allot.kubelet.registration import NodeDescription, needed_amounts, needed_change, new_node

SERVER = NodeDescription(
    "server",
    labels={"example.com/rack": "r1"},
    taints=({"key": "example.com/gpu", "effect": "NoSchedule"},),
    capacity={"cpu": "8"},
    allocatable={"cpu": "7"},
)


def test_a_new_node_is_simulated() -> None:
    node = new_node(SERVER)

    assert node["metadata"]["labels"] == {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": "server",
        "kubernetes.io/os": "linux",
        "example.com/rack": "r1",
        "allot.dev/simulated": "true",
    }
    assert node["spec"] == {"taints": [{"key": "example.com/gpu", "effect": "NoSchedule"}]}
    assert node["status"] == {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "7"}}


def test_a_node_as_described_is_left_alone() -> None:
    node = Node(new_node(SERVER))

    assert needed_change(node, SERVER) is None
    assert needed_amounts(node, SERVER) is None


def test_only_what_differs_is_changed_and_what_others_added_stays() -> None:
    node = Node(new_node(SERVER)).with_value("x", "metadata", "labels", "of-others")
    changed = SERVER._replace(labels={"example.com/rack": "r2"}, capacity={"cpu": "9"})

    assert needed_change(node, changed) == {"metadata": {"labels": {"example.com/rack": "r2"}}}
    assert needed_amounts(node, changed) == {"status": {"capacity": {"cpu": "9"}}}
