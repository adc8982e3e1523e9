"""The checks of a pod's claims before it may start."""

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
            yield f"the claim for {entry.name} has not been created yet"
        elif name := made[
            entry.name
        ].resource_claim_name:  # without a name the entry needs no claim
            yield ClaimUse(ObjectKey(namespace, name), is_own=True)
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        yield ClaimUse(ObjectKey(namespace, extended.resource_claim_name), is_own=True)


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
        return f"ResourceClaim {name} does not exist"
    owners = claim.metadata.owner_references
    if use.is_own and not any(owner.uid == uid and owner.controller for owner in owners):
        return f"ResourceClaim {name} was not created for this pod"
    if claim.status.allocation is None:
        return f"ResourceClaim {name} is not allocated"
    if not any(consumer.uid == uid for consumer in claim.status.reserved_for):
        return f"ResourceClaim {name} is not reserved for this pod"
    return ""
