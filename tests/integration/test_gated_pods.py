"""Pods that wait for a claim that no component provides: what their condition and events say, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.scheduler.core.gated_pods import GATED_REPORT_DELAY_SECONDS
from allot.testing.cluster import AllotCluster
from tests.integration.test_failure_reasons import claim, pod

MISSING = 'could not find ResourceClaim "default/gpu"'


def from_template(name: str) -> dict[str, Any]:
    """A pod with a claim from a template of its name."""
    made = pod(name)
    made["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimTemplateName": name}]
    return made


def condition(cluster: AllotCluster, name: str) -> dict[str, Any] | None:
    found = cluster.get("Pod", name)
    assert found is not None
    conditions = found["status"].get("conditions") or []
    return next((each for each in conditions if each["type"] == "PodScheduled"), None)


def messages(cluster: AllotCluster, name: str) -> list[str]:
    return [
        each["message"]
        for each in cluster.list("Event", "default")
        if each["involvedObject"]["name"] == name and each["reason"] == "FailedScheduling"
    ]


def wait(cluster: AllotCluster, seconds: float) -> None:
    cluster.run(asyncio.sleep(seconds))


@pytest.mark.allot_cluster(hardware=["gpu-server=1"], virtual_time=True)
def test_a_missing_claim_is_reported_and_the_pod_runs_when_it_is_created(
    allot_cluster: AllotCluster,
) -> None:
    allot_cluster.apply(pod("gpu"))
    wait(allot_cluster, GATED_REPORT_DELAY_SECONDS / 2)
    assert condition(allot_cluster, "gpu") is None

    wait(allot_cluster, GATED_REPORT_DELAY_SECONDS)

    found = condition(allot_cluster, "gpu")
    assert found is not None
    assert (found["status"], found["reason"]) == ("False", "Unschedulable")
    assert found["message"] == MISSING
    assert messages(allot_cluster, "gpu") == [MISSING]

    allot_cluster.apply(claim("gpu", "gpu.example.com", 1))
    allot_cluster.wait_for_phase("gpu", "Running")


@pytest.mark.allot_cluster(hardware=["gpu-server=1"], virtual_time=True)
def test_a_claim_that_is_created_soon_is_not_reported(allot_cluster: AllotCluster) -> None:
    allot_cluster.apply(pod("gpu"))
    wait(allot_cluster, GATED_REPORT_DELAY_SECONDS / 2)
    allot_cluster.apply(claim("gpu", "gpu.example.com", 1))
    allot_cluster.wait_for_phase("gpu", "Running")
    wait(allot_cluster, 3 * GATED_REPORT_DELAY_SECONDS)

    assert messages(allot_cluster, "gpu") == []


@pytest.mark.allot_cluster(hardware=["gpu-server=1"], virtual_time=True)
def test_a_claim_that_is_being_deleted_is_reported(allot_cluster: AllotCluster) -> None:
    held = claim("gpu", "gpu.example.com", 1)
    held["metadata"]["finalizers"] = ["example.com/held"]
    allot_cluster.apply(held)
    allot_cluster.delete("ResourceClaim", "gpu")
    allot_cluster.apply(pod("gpu"))

    wait(allot_cluster, 2 * GATED_REPORT_DELAY_SECONDS)

    assert messages(allot_cluster, "gpu") == ['resourceclaim "gpu" is being deleted']


@pytest.mark.allot_cluster(hardware=["gpu-server=1"], virtual_time=True)
def test_a_missing_template_is_left_to_the_claim_controller(allot_cluster: AllotCluster) -> None:
    allot_cluster.apply(from_template("gpu"))

    wait(allot_cluster, 3 * GATED_REPORT_DELAY_SECONDS)

    assert condition(allot_cluster, "gpu") is None
    assert messages(allot_cluster, "gpu") == []


@pytest.mark.allot_cluster(hardware=["gpu-server=1"], virtual_time=True)
def test_a_deleted_pod_is_not_reported(allot_cluster: AllotCluster) -> None:
    allot_cluster.apply(pod("gpu"))
    allot_cluster.delete("Pod", "gpu")

    wait(allot_cluster, 3 * GATED_REPORT_DELAY_SECONDS)

    assert messages(allot_cluster, "gpu") == []


@pytest.mark.allot_cluster(hardware=["gpu-server=1"], virtual_time=True, rules="v1.38")
def test_by_the_rules_of_kubernetes_it_waits_in_silence(allot_cluster: AllotCluster) -> None:
    allot_cluster.apply(pod("gpu"))

    wait(allot_cluster, 3 * GATED_REPORT_DELAY_SECONDS)

    assert condition(allot_cluster, "gpu") is None
    assert messages(allot_cluster, "gpu") == []
