"""Admin access (KEP-5018): whether the namespace of a claim allows it, as far as the namespace is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.api.resource import ADMIN_ACCESS_LABEL
from allot.client import resources
from allot.client.snapshot import Snapshot


def is_admin_access_forbidden(claim: ResourceClaim, snapshot: Snapshot) -> bool:
    """Whether the claim asks for admin access in a namespace without the label that allows it.

    False if the snapshot does not have the namespace.
    """
    if not _asks_for_admin_access(claim):
        return False
    namespace = snapshot.get(resources.NAMESPACES, ObjectKey("", claim.metadata.namespace))
    return namespace is not None and namespace.metadata.labels.get(ADMIN_ACCESS_LABEL) != "true"


def assumed_admin_access(claims: Iterable[ResourceClaim], snapshot: Snapshot) -> Iterator[str]:
    """For each namespace that is not known: that its claims need its label, as a sentence."""
    namespaces = {
        claim.metadata.namespace: None
        for claim in claims
        if claim.status.allocation is None and _asks_for_admin_access(claim)
    }
    for name in namespaces:
        if snapshot.get(resources.NAMESPACES, ObjectKey("", name)) is None:
            yield (
                f"Admin access needs the label {ADMIN_ACCESS_LABEL}: true on namespace {name},"
                " which was not read: the label is assumed."
            )


def _asks_for_admin_access(claim: ResourceClaim) -> bool:
    return any(
        request.exactly is not None and request.exactly.admin_access
        for request in claim.spec.devices.requests
    )
