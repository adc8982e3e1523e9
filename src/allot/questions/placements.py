"""Placements: pods with their node and claims, as they are in the API afterwards."""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.api.base import replace
from allot.api.claims import MAX_CONSUMERS, ResourceClaim
from allot.api.core import Pod
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME
from allot.scheduler.plugins.dynamic_resources.claim_filter import ClaimFilter
from allot.scheduler.plugins.dynamic_resources.claim_writes import reserved, with_finalizer
from allot.scheduler.plugins.dynamic_resources.filter_results import PodDevices
from allot.scheduler.plugins.dynamic_resources.pod_claims import is_reserved_for
from allot.scheduler.plugins.dynamic_resources.pod_extension import (
    UNCREATED_CLAIM_NAME,
    claim_to_create,
)
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

TOO_MANY_CONSUMERS: Final = f"a claim of the pod is reserved for {MAX_CONSUMERS} pods already"


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
        status = {"resourceClaimName": extended.metadata.name, "requestMappings": []}
        pod = pod.with_value(status, "status", "extendedResourceClaimStatus")
    return pod


def _is_extended(claim: ResourceClaim) -> bool:
    return claim.metadata.uid.endswith(_EXTENDED_UID)


_EXTENDED_UID: Final = f"/{UNCREATED_CLAIM_NAME}"


def claims_after_binding(
    profile: Profile, state: CycleState, pod: PodInfo, node: NodeInfo | None
) -> tuple[ResourceClaim, ...] | None:
    """The pod's claims, allocated and reserved for it; None if one has too many consumers."""
    plugin = profile.plugin(NAME)
    devices: PodDevices | None = state.get(NAME)
    if devices is None or node is None or not isinstance(plugin, ClaimFilter):
        return ()
    allocated = {claim.metadata.uid: claim for claim in plugin.allocated_claims(state, node) or ()}
    found = []
    for claim in devices.claims:
        decided = allocated.pop(claim.metadata.uid, claim)
        if not is_reserved_for(decided, pod):
            if len(decided.status.reserved_for) >= MAX_CONSUMERS:
                return None
            decided = reserved(with_finalizer(decided), pod, None, None)
        found.append(decided)
    found += (_created_claim(claim, pod) for claim in allocated.values())
    return tuple(found)


def _created_claim(claim: ResourceClaim, pod: PodInfo) -> ResourceClaim:
    """The claim for extended resources as it is in the API."""
    created = claim_to_create(claim)
    metadata = replace(created.metadata, uid=f"{pod.uid}{_EXTENDED_UID}")
    created = replace(created, metadata=metadata)
    return reserved(with_finalizer(created), pod, claim.status.allocation, None)
