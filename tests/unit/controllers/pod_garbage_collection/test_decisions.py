"""Pod garbage collection: which pods are deleted, and why."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.core import Node, Pod
from allot.controllers.pod_garbage_collection.decisions import (
    CollectionReason,
    reason_to_end,
    surplus,
)
from allot.testing.builders import a_node, a_pod


def bound_to(node: str = "", name: str = "p", phase: str = "Running", **metadata: Any) -> Pod:
    status = {"reason": metadata.pop("reason", None)}
    return a_pod(name, node=node, phase=phase, status=status, metadata=metadata)


def ready(status: str, *taints: str) -> Node:
    return a_node(conditions={"Ready": status}, taints=[f"{key}:NoExecute" for key in taints])


LEAVING: dict[str, Any] = {"deletionTimestamp": "t", "deletionGracePeriodSeconds": 30}
OUT = "node.kubernetes.io/out-of-service"


@pytest.mark.parametrize(
    ("pod", "node", "reason"),
    [
        pytest.param(bound_to(), None, None, id="not-to-be-deleted"),
        pytest.param(bound_to(**LEAVING), None, CollectionReason.UNSCHEDULED, id="never-bound"),
        pytest.param(bound_to("n", **LEAVING), None, None, id="node-unknown"),
        pytest.param(bound_to("n", **LEAVING), ready("False"), None, id="node-not-ready"),
        pytest.param(
            bound_to("n", **LEAVING),
            ready("Unknown", OUT),
            CollectionReason.OUT_OF_SERVICE,
            id="out-of-service",
        ),
        pytest.param(bound_to("n", **LEAVING), ready("True", OUT), None, id="but-ready"),
        pytest.param(bound_to("n"), ready("False", OUT), None, id="not-asked-to-go"),
        pytest.param(
            bound_to(phase="Failed", **{**LEAVING, "deletionGracePeriodSeconds": 0}),
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
        bound_to(name="young", phase="Succeeded", creationTimestamp="2026-01-03T00:00:00Z"),
        bound_to(name="old-b", phase="Failed", creationTimestamp="2026-01-01T00:00:00Z"),
        bound_to(name="old-a", phase="Succeeded", creationTimestamp="2026-01-01T00:00:00Z"),
        bound_to(
            name="evicted",
            phase="Failed",
            creationTimestamp="2026-01-04T00:00:00Z",
            reason="Evicted",
        ),
    ]
    names = [pod.metadata.name for pod in surplus(pods, 1)]
    assert names == ["evicted", "old-a", "old-b"]
    assert surplus(pods, 4) == []
