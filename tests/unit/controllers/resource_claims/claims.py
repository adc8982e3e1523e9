"""Pods and claims for the tests beside this module."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from allot.api.claims import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from allot.api.core import Pod
from allot.api.meta import ObjectMeta, OwnerReference
from allot.api.resource import DELETE_PROTECTION

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_pod(
    name: str = "p",
    uid: str = "uid-p",
    *,
    entries: Iterable[dict[str, str]] = (),
    status: dict[str, Any] | None = None,
    **more: Any,
) -> Pod:
    """`more` is `node_name`, `deleting`."""
    metadata: dict[str, Any] = {"namespace": "ns", "name": name, "uid": uid}
    spec: dict[str, Any] = {"resourceClaims": list(entries)}
    if more.get("deleting"):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if more.get("node_name"):
        spec["nodeName"] = more["node_name"]
    return Pod({"metadata": metadata, "spec": spec, "status": status or {}})


def consumer(uid: str, **fields: str) -> ResourceClaimConsumerReference:
    return ResourceClaimConsumerReference(**{"resource": "pods", "name": uid, "uid": uid, **fields})


def a_claim(
    *consumers: ResourceClaimConsumerReference,
    owner: str = "",
    allocated: bool = True,
    protected: bool = True,
    deleting: bool = False,
    **metadata: Any,
) -> ResourceClaim:
    owners = (OwnerReference("v1", "Pod", "p", owner, True),) if owner else ()
    return ResourceClaim(
        metadata=ObjectMeta(
            namespace="ns",
            uid="uid-c",
            resource_version="7",
            finalizers=(DELETE_PROTECTION,) if protected else (),
            deletion_timestamp=NOW if deleting else None,
            owner_references=owners,
            **{"name": "c", **metadata},
        ),
        status=ResourceClaimStatus(
            allocation=AllocationResult() if allocated else None, reserved_for=consumers
        ),
    )
