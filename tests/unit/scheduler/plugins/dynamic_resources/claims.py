"""Claims as the API server has them, in one line: with uid, version, allocation and reservations."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from allot.api.base import replace
from allot.api.claims import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequest,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from allot.api.meta import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    OwnerReference,
)
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import DRIVER, a_claim
from tests.unit.scheduler.state.objects import a_pod

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def an_allocation(
    *devices: str, node: str = "", pool: str = "node-1", request: str = "gpu"
) -> AllocationResult:
    """Devices of one pool; with `node`, usable there alone."""
    results = tuple(
        DeviceRequestAllocationResult(request=request, driver=DRIVER, pool=pool, device=device)
        for device in devices
    )
    selector = None
    if node:
        named = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
        selector = NodeSelector((NodeSelectorTerm(match_fields=(named,)),))
    return AllocationResult(devices=DeviceAllocationResult(results), node_selector=selector)


def a_stored_claim(
    name: str = "claim",
    *requests: DeviceRequest,
    version: int = 1,
    uid: str = "",
    allocation: AllocationResult | None = None,
    reserved_for: Iterable[PodInfo] = (),
    owner: PodInfo | None = None,
    deleting: bool = False,
    **metadata: Any,
) -> ResourceClaim:
    claim = a_claim(*requests, name=name)
    consumers = tuple(
        ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
        for pod in reserved_for
    )
    owners: tuple[OwnerReference, ...] = ()
    if owner is not None:
        owners = (OwnerReference("v1", "Pod", owner.name, owner.uid, controller=True),)
    return replace(
        claim,
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=uid or f"uid-{name}",
            resource_version=str(version),
            owner_references=owners,
            deletion_timestamp=LONG_AGO if deleting else None,
            **metadata,
        ),
        status=ResourceClaimStatus(allocation=allocation, reserved_for=consumers),
    )


def a_pod_with_claims(*names: str, pod: str = "pod", **fields: Any) -> PodInfo:
    """A pod that uses these claims by name."""
    entries = [{"name": name, "resourceClaimName": name} for name in names]
    return a_pod(pod, resourceClaims=entries, **fields)
