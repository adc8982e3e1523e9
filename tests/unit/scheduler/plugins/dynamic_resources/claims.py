"""Claims as the API server has them, in one line: with uid, version, allocation and reservations."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from allot.api.base import replace
from allot.api.claims import (
    AllocationResult,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from allot.api.meta import (
    ObjectMeta,
    OwnerReference,
)
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import a_claim
from tests.unit.scheduler.state.objects import a_pod_info

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


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
    return a_pod_info(pod, resourceClaims=entries, **fields)
