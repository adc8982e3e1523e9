"""Indexes between pods, claims and templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from allot.api.claims import ResourceClaim, ResourceClaimConsumerReference
from allot.api.core import Pod
from allot.api.meta import OwnerReference

PODS_BY_CLAIM: Final = "resource-claims/pods-by-claim"
PODS_BY_TEMPLATE: Final = "resource-claims/pods-by-template"
CLAIMS_BY_POD: Final = "resource-claims/claims-by-pod"
"""By uid of the pod that owns the claim or that it is reserved for."""


def claims_used_by_pod(pod: Pod) -> Sequence[str]:
    return pod.used_claim_keys


def templates_used_by_pod(pod: Pod) -> list[str]:
    namespace = pod.key.namespace
    entries = pod.claim_entries
    return [f"{namespace}/{entry.template_name}" for entry in entries if entry.template_name]


def pods_behind_claim(claim: ResourceClaim) -> list[str]:
    reserved, owner = claim.status.reserved_for, owning_pod(claim)
    uids = [consumer.uid for consumer in reserved if is_pod(consumer)] if reserved else []
    # Mostly the owner reserves the claim, which then changes nothing in the index.
    return uids if owner is None or owner.uid in uids else [*uids, owner.uid]


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    """The pod that the claim was created for."""
    for owner in claim.metadata.owner_references:
        if owner.controller and owner.kind == "Pod" and owner.api_version == "v1":
            return owner
    return None


def is_pod(consumer: ResourceClaimConsumerReference) -> bool:
    """Whether a consumer is a pod; reservations of other kinds are removed by their controllers."""
    return consumer.resource == "pods" and not consumer.api_group
