"""Pods and claims for the tests beside this module."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from allot.api.claims import (
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from allot.api.core import Pod
from allot.api.resource import DELETE_PROTECTION
from allot.testing.builders import a_claim, a_pod, an_allocation, an_owner

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_consuming_pod(
    name: str = "p",
    uid: str = "uid-p",
    *,
    entries: Iterable[dict[str, str]] = (),
    status: dict[str, Any] | None = None,
    node: str = "",
    deleting: bool = False,
) -> Pod:
    return a_pod(
        name, namespace="ns", uid=uid, claims=entries, status=status, node=node, deleting=deleting
    )


def consumer(uid: str, **fields: str) -> ResourceClaimConsumerReference:
    return ResourceClaimConsumerReference(**{"resource": "pods", "name": uid, "uid": uid, **fields})


def a_used_claim(
    *consumers: ResourceClaimConsumerReference,
    owner: str = "",
    allocated: bool = True,
    protected: bool = True,
    deleting: bool = False,
    **metadata: Any,
) -> ResourceClaim:
    return a_claim(
        allocation=an_allocation() if allocated else None,
        reserved_for=consumers,
        uid="uid-c",
        resource_version="7",
        finalizers=(DELETE_PROTECTION,) if protected else (),
        deletion_timestamp=NOW if deleting else None,
        owner_references=(an_owner("p", owner),) if owner else (),
        **{"name": "c", "namespace": "ns", **metadata},
    )
