"""What a pod needs for its extended resources in one cycle: a claim for every kind of node.

Values only; `extended_claims` makes the claim real.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from allot.api.base import replace
from allot.api.claims import DeviceClaim, ResourceClaim, ResourceClaimSpec, ResourceClaimStatus
from allot.api.core import ContainerExtendedResourceRequest, Pod
from allot.api.generated_names import SUFFIX_LENGTH, suffix_of
from allot.api.meta import ObjectMeta, OwnerReference
from allot.api.resource import DELETE_PROTECTION, EXTENDED_RESOURCE_CLAIM
from allot.scheduler.plugins.dynamic_resources.extended_resources import (
    ClassOf,
    ExtendedRequests,
    ServedByDevices,
    read_extended_requests,
    resources_from_devices,
    serve_with_devices,
)
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

UNCREATED_CLAIM_NAME: Final = "<extended-resources>"
"""No claim in the API can have this name."""
NAME_SUFFIX: Final = "-extended-resources-"
MAX_NAME_LENGTH: Final = 63
"""Of generated names."""
CANNOT_FIT: Final = "cannot fit resource"
LEFT_OVER: Final = "cannot schedule extended resource claim"


class Variant(NamedTuple):
    """The claim for nodes where devices must serve the same resources."""

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]


@dataclass(slots=True)
class PodExtension:
    """The extended resources of one pod in one cycle."""

    pod: PodInfo
    wanted: ExtendedRequests
    left_over: tuple[ResourceClaim, ...]
    """Claims that earlier attempts made for this pod."""
    variants: dict[frozenset[str], Variant] = field(default_factory=dict)
    """By the resources that devices serve."""
    reserved: ResourceClaim | None = None
    """In flight: the claim with the allocation that was decided on."""
    mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    """Of the claim that is reserved."""
    created: ResourceClaim | None = None

    def variant_on(self, node: NodeInfo) -> Variant | str | None:
        """The claim that the pod needs on a node, None if it needs none there, or why it cannot run there."""
        if self.left_over:
            return LEFT_OVER
        resources = resources_from_devices(self.wanted, node.allocatable_scalars)
        if resources is None:
            return CANNOT_FIT
        if not resources:
            return None
        variant = self.variants.get(resources)
        if variant is None:
            served = serve_with_devices(self.wanted, resources)
            variant = Variant(uncreated_claim(self.pod, served), served.mappings)
            self.variants[resources] = variant
        return variant


def extension_of(
    pod: PodInfo, class_of: ClassOf, left_over: tuple[ResourceClaim, ...]
) -> PodExtension | None:
    """What the pod needs for its extended resources; None if devices have nothing to do with them."""
    scalars = pod.requests.scalars
    if not scalars:
        return None
    wanted = read_extended_requests(pod.pod.data.get("spec") or {}, scalars, class_of)
    if wanted.resources or left_over or pod.claim_statuses[1]:
        return PodExtension(pod, wanted, left_over)
    return None


def uncreated_claim(pod: PodInfo, served: ServedByDevices) -> ResourceClaim:
    """The claim as long as only we know of it."""
    owner = OwnerReference(
        api_version="v1",
        kind="Pod",
        name=pod.name,
        uid=pod.uid,
        controller=True,
        block_owner_deletion=True,
    )
    metadata = ObjectMeta(
        name=UNCREATED_CLAIM_NAME,
        generate_name=f"{pod.name}{NAME_SUFFIX}",
        namespace=pod.namespace,
        uid=f"{pod.uid}/{UNCREATED_CLAIM_NAME}",
        annotations={EXTENDED_RESOURCE_CLAIM: "true"},
        owner_references=(owner,),
    )
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=served.requests))
    return ResourceClaim(metadata=metadata, spec=spec)


def claim_to_create(claim: ResourceClaim, attempt: int = 0) -> ResourceClaim:
    """The claim in memory as it is sent to the API server.

    Its name looks like a generated one, but its suffix is derived from the pod's uid: however many attempts there are
    and whatever answers get lost, a pod has one such claim at a time. `attempt` gives another name if that is in use.
    """
    generated, uid = claim.metadata.generate_name, extended_claim_pod(claim) or ""
    base = generated[: MAX_NAME_LENGTH - SUFFIX_LENGTH]
    metadata = replace(claim.metadata, name=base + _name_suffix(uid, attempt), uid="")
    return replace(claim, metadata=metadata, status=ResourceClaimStatus())


def _name_suffix(pod_uid: str, attempt: int) -> str:
    digest = hashlib.sha256(f"{pod_uid}/{attempt}".encode()).digest()
    return suffix_of(int.from_bytes(digest[:8]))


def extended_claim_pod(claim: ResourceClaim) -> str | None:
    """The uid of the pod for whose extended resources the claim was made; None for other claims."""
    if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) != "true":
        return None
    for owner in claim.metadata.owner_references:
        if owner.controller and owner.kind == "Pod":
            return owner.uid
    return None


def without_finalizer(claim: ResourceClaim) -> ResourceClaim:
    finalizers = claim.metadata.finalizers
    if DELETE_PROTECTION not in finalizers:
        return claim
    left = tuple(name for name in finalizers if name != DELETE_PROTECTION)
    return replace(claim, metadata=replace(claim.metadata, finalizers=left))


def named_in_status(pod: Pod) -> str:
    """The claim that a pod's status names; empty if none."""
    return str(
        pod.get("status", "extendedResourceClaimStatus", "resourceClaimName", default="") or ""
    )
