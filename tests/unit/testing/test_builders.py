"""Builders make objects that the API server accepts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.allocation import Allocated, Infeasible, StepBudget, allocate
from allot.testing.builders import (
    a_claim,
    a_class,
    a_consumer,
    a_device,
    a_node,
    a_pod,
    a_problem,
    a_slice,
    an_allocation,
    an_owner,
    manifest,
)
from allot.testing.manifests import (
    a_claim_manifest,
    a_class_manifest,
    a_node_manifest,
    a_pod_manifest,
    a_slice_manifest,
)
from allot.testing.servers import LocalServer

CORE = "/api/v1"
DRA = "/apis/resource.k8s.io/v1"


@pytest.mark.parametrize(
    ("path", "document"),
    [
        (f"{DRA}/deviceclasses", manifest(a_class("gpu", "device.driver == 'gpu.example.com'"))),
        (f"{DRA}/namespaces/default/resourceclaims", manifest(a_claim())),
        (
            f"{DRA}/resourceslices",
            manifest(a_slice(a_device("gpu-0", {"model": "a"}, {"memory": "80Gi"}))),
        ),
        (f"{CORE}/nodes", manifest(a_node(labels={"a": "b"}, taints=["k=v:NoSchedule"]))),
        (
            f"{CORE}/namespaces/default/pods",
            manifest(
                a_pod(claims={"gpu": "claim"}, containers=[{"name": "c", "image": "i"}], uid="")
            ),
        ),
        (f"{DRA}/deviceclasses", a_class_manifest("gpu", "device.driver == 'gpu.example.com'")),
        (f"{DRA}/namespaces/default/resourceclaims", a_claim_manifest()),
        (f"{DRA}/resourceslices", a_slice_manifest({"name": "gpu-0"})),
        (f"{DRA}/resourceslices", a_slice_manifest({"name": "gpu-0"}, allNodes=True)),
        (f"{CORE}/nodes", a_node_manifest()),
        (f"{CORE}/namespaces/default/pods", a_pod_manifest(claims={"gpu": "claim"})),
    ],
    ids=[
        "class",
        "claim",
        "slice",
        "node",
        "pod",
        "class-manifest",
        "claim-manifest",
        "slice-manifest",
        "slice-manifest-all-nodes",
        "node-manifest",
        "pod-manifest",
    ],
)
def test_an_api_server_accepts_them(path: str, document: dict[str, Any]) -> None:
    async def story() -> dict[str, Any]:
        async with LocalServer() as server:
            return await server.post(path, document)

    created = asyncio.run(story())
    assert created["metadata"]["name"] == document["metadata"]["name"]


def test_a_claim_can_be_allocated_and_reserved() -> None:
    claim = a_claim(
        allocation=an_allocation("gpu-0", "gpu-1"),
        reserved_for=[a_consumer("pod")],
        owner_references=(an_owner("pod"),),
    )

    assert claim.status.allocation is not None
    assert [result.device for result in claim.status.allocation.devices.results] == [
        "gpu-0",
        "gpu-1",
    ]
    assert claim.status.reserved_for[0].uid == claim.metadata.owner_references[0].uid == "uid-pod"


def test_what_a_test_does_not_state_is_missing() -> None:
    assert a_pod().data == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": "default", "uid": "uid-pod"},
    }


def test_what_a_test_states_is_there() -> None:
    pod = a_pod(node="n", phase="Running", conditions={"Ready": "True"}, deleting=True, priority=7)

    assert pod.data["spec"] == {"nodeName": "n", "priority": 7}
    assert pod.data["status"] == {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    assert pod.metadata.deletion_timestamp is not None


def test_a_problem_has_devices_and_what_other_claims_hold() -> None:
    def outcome(**held: str) -> object:
        allocated = {f"default/{claim}": an_allocation(device) for claim, device in held.items()}
        problem = a_problem(devices=[a_device("gpu-0")], allocated=allocated)
        return allocate(problem, StepBudget(100), lambda: "share")

    assert isinstance(outcome(), Allocated)
    assert isinstance(outcome(other="gpu-0"), Infeasible)
