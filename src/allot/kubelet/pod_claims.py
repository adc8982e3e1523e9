"""The checks of a pod's claims before it may start. Texts are Kubernetes'."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.identities import ObjectKey


class ClaimUse(NamedTuple):
    """A claim that a pod uses, and whether it must have been created for this pod."""

    key: ObjectKey
    is_own: bool


def claims_of(pod: Pod) -> Iterator[ClaimUse | str]:
    """The claims that the pod uses; a message for each that is not created yet."""
    namespace = pod.metadata.namespace
    made = {entry.name: entry for entry in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name:
            yield ClaimUse(ObjectKey(namespace, entry.resource_claim_name), is_own=False)
        elif entry.name not in made:
            yield f'pod "{namespace}/{pod.metadata.name}": ResourceClaim not created yet'
        elif name := made[
            entry.name
        ].resource_claim_name:  # without a name the entry needs no claim
            yield ClaimUse(ObjectKey(namespace, name), is_own=True)
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        yield ClaimUse(ObjectKey(namespace, extended.resource_claim_name), is_own=True)


def existing_claims(
    pod: Pod, find: Callable[[ObjectKey], ResourceClaim | None]
) -> list[ResourceClaim]:
    """The claims of the pod that exist."""
    uses = (use for use in claims_of(pod) if isinstance(use, ClaimUse))
    return [claim for use in uses if (claim := find(use.key)) is not None]


def what_is_missing(pod: Pod, find: Callable[[ObjectKey], ResourceClaim | None]) -> str:
    """Why the pod may not start yet; empty if it may."""
    for use in claims_of(pod):
        if isinstance(use, str):
            return use
        problem = _problem(pod, use, find(use.key))
        if problem:
            return problem
    return ""


def _problem(pod: Pod, use: ClaimUse, claim: ResourceClaim | None) -> str:
    name, uid = use.key.name, pod.metadata.uid
    if claim is None:
        return f'fetch ResourceClaim {name}: resourceclaims.resource.k8s.io "{name}" not found'
    owners = claim.metadata.owner_references
    if use.is_own and not any(owner.uid == uid and owner.controller for owner in owners):
        return f"ResourceClaim {use.key} was not created for pod {pod.key} (pod is not owner)"
    is_reserved = any(consumer.uid == uid for consumer in claim.status.reserved_for)
    if claim.status.allocation is None or not is_reserved:
        return (
            f"pod {pod.metadata.name} ({uid}) is not allowed to use "
            f"ResourceClaim {name} ({claim.metadata.uid})"
        )
    return ""
