"""Pods that nobody else will delete."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.core import Node, Pod
from allot.controllers.pod_garbage_collection.decisions import (
    CollectionReason,
    reason_to_end,
    surplus,
)


def a_pod(name: str = "p", *, node: str = "", phase: str = "Running", **metadata: Any) -> Pod:
    status = {"phase": phase, "reason": metadata.pop("reason", None)}
    return Pod(
        {"metadata": {"name": name, **metadata}, "spec": {"nodeName": node}, "status": status}
    )


def a_node(ready: str, *taints: str) -> Node:
    conditions = [{"type": "Ready", "status": ready}]
    spec = {"taints": [{"key": key, "effect": "NoExecute"} for key in taints]}
    return Node({"spec": spec, "status": {"conditions": conditions}})


LEAVING: dict[str, Any] = {"deletionTimestamp": "t", "deletionGracePeriodSeconds": 30}
OUT = "node.kubernetes.io/out-of-service"


@pytest.mark.parametrize(
    ("pod", "node", "reason"),
    [
        pytest.param(a_pod(), None, None, id="not-to-be-deleted"),
        pytest.param(a_pod(**LEAVING), None, CollectionReason.UNSCHEDULED, id="never-bound"),
        pytest.param(a_pod(node="n", **LEAVING), None, None, id="node-unknown"),
        pytest.param(a_pod(node="n", **LEAVING), a_node("False"), None, id="node-not-ready"),
        pytest.param(
            a_pod(node="n", **LEAVING),
            a_node("Unknown", OUT),
            CollectionReason.OUT_OF_SERVICE,
            id="out-of-service",
        ),
        pytest.param(a_pod(node="n", **LEAVING), a_node("True", OUT), None, id="but-ready"),
        pytest.param(a_pod(node="n"), a_node("False", OUT), None, id="not-asked-to-go"),
        pytest.param(
            a_pod(phase="Failed", **{**LEAVING, "deletionGracePeriodSeconds": 0}),
            None,
            None,
            id="only-finalizers-keep-it",
        ),
    ],
)
def test_pods_to_be_deleted(pod: Pod, node: Node | None, reason: CollectionReason | None) -> None:
    assert reason_to_end(pod, node) is reason


def test_evicted_pods_go_first_then_the_oldest() -> None:
    pods = [
        a_pod("young", phase="Succeeded", creationTimestamp="2026-01-03T00:00:00Z"),
        a_pod("old-b", phase="Failed", creationTimestamp="2026-01-01T00:00:00Z"),
        a_pod("old-a", phase="Succeeded", creationTimestamp="2026-01-01T00:00:00Z"),
        a_pod(
            "evicted", phase="Failed", creationTimestamp="2026-01-04T00:00:00Z", reason="Evicted"
        ),
    ]
    names = [pod.metadata.name for pod in surplus(pods, 1)]
    assert names == ["evicted", "old-a", "old-b"]
    assert surplus(pods, 4) == []
