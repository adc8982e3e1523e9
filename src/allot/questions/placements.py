"""Placements: pods with their node and claims, as they are in the API afterwards."""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.scheduler.plugins.dynamic_resources.claim_writes import reserved, with_finalizer
from allot.scheduler.plugins.dynamic_resources.pod_extension import (
    UNCREATED_CLAIM_NAME,
    claim_to_create,
)
from allot.scheduler.state.pods import PodInfo


class Placement(NamedTuple):
    """A pod that got a node."""

    pod: PodInfo
    node_name: str
    claims: tuple[ResourceClaim, ...]
    """All its claims, allocated and reserved for it."""
    waits: bool
    """Whether its devices must be made ready before it is bound (KEP-5007)."""


def bound_pod(placement: Placement) -> Pod:
    """The pod with its node, and the claim for its extended resources in its status."""
    pod = placement.pod.pod.with_value(placement.node_name, "spec", "nodeName")
    extended = next((each for each in placement.claims if _is_extended(each)), None)
    if extended is not None:
        told = {"resourceClaimName": extended.metadata.name, "requestMappings": []}
        pod = pod.with_value(told, "status", "extendedResourceClaimStatus")
    return pod


def _is_extended(claim: ResourceClaim) -> bool:
    return claim.metadata.uid.endswith(_EXTENDED_UID)


_EXTENDED_UID: Final = f"/{UNCREATED_CLAIM_NAME}"


def created_claim(claim: ResourceClaim, pod: PodInfo) -> ResourceClaim:
    """The claim for extended resources as it is in the API."""
    created = claim_to_create(claim)
    metadata = replace(created.metadata, uid=f"{pod.uid}{_EXTENDED_UID}")
    created = replace(created, metadata=metadata)
    return reserved(with_finalizer(created), pod, claim.status.allocation, None)
