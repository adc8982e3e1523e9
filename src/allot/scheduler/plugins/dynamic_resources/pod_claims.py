"""Which claims a pod uses, whether it may use them, and which changes of claims may help it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from allot.api.claims import ResourceClaim
from allot.api.core import PodResourceClaim
from allot.api.identities import ObjectKey
from allot.scheduler.framework.events import Hint
from allot.scheduler.state.pods import PodInfo

FindClaim = Callable[[ObjectKey], ResourceClaim | None]


class Unusable(NamedTuple):
    """Why a pod cannot have its claims yet, in Kubernetes' words."""

    reason: str
    needs_user: bool = False
    """Whether no component is about to provide the claim: it is named by the pod, or being deleted."""


def claims_of(pod: PodInfo, find: FindClaim) -> list[ResourceClaim] | Unusable:
    """The pod's claims in the order of its spec; entries that need none are left out."""
    claims: list[ResourceClaim] = []
    namespace = pod.key.namespace
    for entry in pod.claims:
        name = claim_name(pod, entry)
        if isinstance(name, Unusable):
            return name
        if name is None:
            continue
        claim = find(ObjectKey(namespace, name))
        if claim is None:
            return Unusable(
                f'could not find ResourceClaim "{pod.namespace}/{name}"',
                needs_user=entry.resource_claim_name is not None,
            )
        if entry.resource_claim_template_name is not None and not is_created_for(claim, pod):
            return Unusable(
                f"ResourceClaim {pod.namespace}/{name} was not created for Pod "
                f"{pod.namespace}/{pod.name} (Pod is not owner)"
            )
        if claim.metadata.deletion_timestamp is not None:
            return Unusable(f'resourceclaim "{name}" is being deleted', needs_user=True)
        if claim not in claims:  # two entries may name one claim
            claims.append(claim)
    return claims


def claim_keys(pod: PodInfo) -> list[ObjectKey]:
    """The keys of the claims that the pod names, usable or not."""
    keys: dict[ObjectKey, None] = {}
    statuses, _ = pod.claim_statuses
    for entry in pod.claims:
        if entry.resource_claim_name is None and not statuses:
            continue  # not created yet
        name = claim_name(pod, entry)
        if isinstance(name, str):
            keys[ObjectKey(pod.key.namespace, name)] = None
    return list(keys)


def claim_name(pod: PodInfo, entry: PodResourceClaim) -> str | Unusable | None:
    """The name of an entry's claim; None if the entry needs none."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    if entry.resource_claim_template_name is None:
        return Unusable(
            f'pod "{pod.namespace}/{pod.name}", spec.resourceClaim "{entry.name}": '
            "none of the supported fields are set"
        )
    for status in pod.claim_statuses[0] or ():
        if status.get("name") == entry.name:
            name: str | None = status.get("resourceClaimName")
            return name
    return Unusable(f'pod "{pod.namespace}/{pod.name}": ResourceClaim not created yet')


def is_created_for(claim: ResourceClaim, pod: PodInfo) -> bool:
    for owner in claim.metadata.owner_references:
        if owner.controller and owner.uid == pod.uid:
            return True
    return False


def is_reserved_for(claim: ResourceClaim, pod: PodInfo) -> bool:
    consumers = claim.status.reserved_for
    return bool(consumers) and any(consumer.uid == pod.uid for consumer in consumers)


def uses(pod: PodInfo, claim: ResourceClaim) -> bool:
    """Whether the pod's claims include this one."""
    if claim.metadata.namespace != pod.namespace:
        return False
    return any(claim_name(pod, entry) == claim.metadata.name for entry in pod.claims)


def claim_hint(
    pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim | None, find: FindClaim
) -> Hint:
    """Whether a change of a claim may let the pod fit."""
    if new is None:
        held = old is None or old.status.allocation is not None
        return Hint.QUEUE if held else Hint.SKIP
    if isinstance(claims_of(pod, find), Unusable):
        return Hint.SKIP
    if old is not None and old.status.allocation is not None and new.status.allocation is None:
        return Hint.QUEUE  # devices are free again
    if not uses(pod, new):
        return Hint.SKIP
    if old is None or old.status != new.status:
        return Hint.QUEUE
    return Hint.SKIP


def helps_only_referencing_pods(old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
    """Whether a change of a claim means nothing to pods that do not use it: no devices become free."""
    if new is None:
        return False
    return old is None or old.status.allocation is None or new.status.allocation is not None


def pod_hint(pod: PodInfo, find: FindClaim) -> Hint:
    """Whether a change of the pod itself, such as a claim made for it, lets it go on."""
    return Hint.SKIP if isinstance(claims_of(pod, find), Unusable) else Hint.QUEUE
