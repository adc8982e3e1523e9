"""Autoscalers keep workloads within bounds, and say that there are no metrics."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.raw import RawObject
from allot.controllers.horizontal_pod_autoscaling import ScalingDecision, decide
from allot.testing.cluster import VirtualTimeCluster
from allot.testing.settings import ClusterSettings

LABELS = {"app": "web"}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}
AUTOSCALER: dict[str, Any] = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "minReplicas": 2,
        "maxReplicas": 5,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    },
}


@pytest.mark.parametrize(
    ("replicas", "wanted"),
    [
        (0, ScalingDecision(0, is_disabled=True)),
        (1, ScalingDecision(2, "Current number of replicas below Spec.MinReplicas")),
        (3, ScalingDecision(3)),
        (9, ScalingDecision(5, "Current number of replicas above Spec.MaxReplicas")),
    ],
)
def test_bounds(replicas: int, wanted: ScalingDecision) -> None:
    assert decide(RawObject(AUTOSCALER), replicas) == wanted


def test_a_workload_is_kept_within_bounds_and_metrics_are_missing() -> None:
    with VirtualTimeCluster(ClusterSettings(has_nodes=False)) as cluster:
        cluster.apply(DEPLOYMENT, AUTOSCALER)
        cluster.wait_for(
            "deployments", "web", lambda found: found is not None and found["spec"]["replicas"] == 2
        )
        cluster.advance(20)
        autoscaler = cluster.get("horizontalpodautoscalers", "web")
        assert autoscaler is not None
        status = autoscaler["status"]

        assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 2)
        reasons = {each["type"]: each["reason"] for each in status["conditions"]}
        assert reasons["AbleToScale"] == "SucceededGetScale"
        assert reasons["ScalingActive"] == "FailedGetResourceMetric"
