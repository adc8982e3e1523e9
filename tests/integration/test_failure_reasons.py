"""What the condition of a pending pod says after the usual summary: the reason that helps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.scheduler.core.failure_explainer import ALTERNATIVE_UNAVAILABLE
from allot.testing.cluster import AllotCluster

SUMMARY = "cannot allocate all claims. preemption: "


def claim(name: str, device_class: str, count: int) -> dict[str, Any]:
    exactly = {"deviceClassName": device_class, "count": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }


def pod(name: str) -> dict[str, Any]:
    """It uses the claim of its name."""
    uses = {"claims": [{"name": "c"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "c", "image": "example.com/i", "resources": uses}],
            "resourceClaims": [{"name": "c", "resourceClaimName": name}],
        },
    }


def reason_why_pending(cluster: AllotCluster, name: str) -> str:
    found = cluster.wait_for(
        "Pod",
        name,
        lambda pod: pod is not None and "conditions" in pod["status"],
    )
    assert found is not None
    (message,) = [
        each["message"] for each in found["status"]["conditions"] if each["type"] == "PodScheduled"
    ]
    assert SUMMARY in message
    return str(message)


@pytest.mark.allot_cluster(hardware=["gpu-server=1", "shared-nic", "fabric"], virtual_time=True)
def test_who_holds_the_devices(allot_cluster: AllotCluster) -> None:
    for number in range(4):
        name = f"holder-{number}"
        allot_cluster.apply(claim(name, "gpu.example.com", 2), pod(name))
        allot_cluster.wait_for_phase(name, "Running")
    allot_cluster.apply(claim("late", "gpu.example.com", 1), pod("late"))

    message = reason_why_pending(allot_cluster, "late")

    assert "On node gpu-server-0, request r of claim default/late finds 0 of 1 device;" in message
    assert (
        "gpu-0, gpu-1, gpu-2 and 5 more: held by claims"
        " default/holder-0, default/holder-1, default/holder-2 and 1 more." in message
    )
    assert message.endswith("What would help: release claim default/holder-0.")


@pytest.mark.allot_cluster(hardware=["gpu-server=12", "shared-nic"], virtual_time=True)
def test_the_node_that_comes_nearest(allot_cluster: AllotCluster) -> None:
    allot_cluster.apply(claim("nics", "shared-nic.example.com", 3), pod("nics"))

    message = reason_why_pending(allot_cluster, "nics")

    assert "On node shared-nic-0, request r of claim default/nics finds 2 of 3 devices" in message


@pytest.mark.allot_cluster(hardware=["gpu-server=1"], virtual_time=True)
def test_why_a_pod_gets_no_better_alternative_recorded(allot_cluster: AllotCluster) -> None:
    allot_cluster.apply(claim("holder", "gpu.example.com", 6), pod("holder"))
    allot_cluster.wait_for_phase("holder", "Running")
    alternatives = [
        {"name": name, "deviceClassName": "gpu.example.com", "count": count}
        for name, count in (("four", 4), ("two", 2), ("one", 1))
    ]
    modest = claim("modest", "gpu.example.com", 1)
    modest["spec"]["devices"]["requests"] = [{"name": "r", "firstAvailable": alternatives}]
    allot_cluster.apply(modest, pod("modest"))
    allot_cluster.wait_for_phase("modest", "Running")

    def recorded(events: list[dict[str, Any]]) -> list[str]:
        return [each["message"] for each in events if each["reason"] == ALTERNATIVE_UNAVAILABLE]

    for _ in range(100):
        notes = recorded(allot_cluster.list("Event", "default"))
        if notes:
            break
        allot_cluster.run(asyncio.sleep(0.1))
    (note,) = notes
    assert note == (
        "On node gpu-server-0, not r/four: request r of claim default/modest finds 2 of 4 devices;"
        " gpu-0, gpu-1, gpu-2 and 3 more: held by claim default/holder."
    )
