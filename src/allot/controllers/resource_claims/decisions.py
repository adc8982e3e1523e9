"""What to do with a claim when the pods that use it are done.

    reserved ──► the last consumer is done ──► released and deallocated ──► unprotected
                                                                               │ its pod is done, too
    deleted by a user   ──► deallocated ──► unprotected ──► gone ◄── deleted ◄─┘

A claim that is allocated and was never reserved stays allocated: it may have been allocated ahead of its first
consumer. A claim that is being deleted waits for its last consumer.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from allot.api.base import replace
from allot.api.claims import ResourceClaim, ResourceClaimConsumerReference
from allot.api.core import Pod
from allot.api.resource import DELETE_PROTECTION
from allot.controllers.resource_claims.indexes import is_pod
from allot.controllers.resource_claims.pods import is_done, uid_of


class ConsumerState(Enum):
    """The state of a pod that a claim refers to."""

    NEEDED = auto()
    """Exists and may use its claims."""
    DONE = auto()
    """Exists and will not use its claims (again)."""
    GONE = auto()
    """Does not exist."""
    REPLACED = auto()
    """Does not exist, and another pod has its name."""
    UNKNOWN = auto()
    """The informer cannot tell: ask the server."""


def state_in_copy(uid: str, copy: Pod | None, was_deleted: bool) -> ConsumerState:
    """The state according to the informer. It may be outdated: a pod that it does not have may be new."""
    is_same = copy is not None and uid_of(copy) == uid
    if was_deleted:
        return ConsumerState.GONE if copy is None or is_same else ConsumerState.REPLACED
    if copy is None or not is_same:
        return ConsumerState.UNKNOWN
    return ConsumerState.DONE if is_done(copy) else ConsumerState.NEEDED


def state_on_server(uid: str, found: Pod | None) -> ConsumerState:
    """The state according to a live lookup. All states but NEEDED are final."""
    if found is None:
        return ConsumerState.GONE
    if uid_of(found) != uid:
        return ConsumerState.REPLACED
    return ConsumerState.DONE if is_done(found) else ConsumerState.NEEDED


# --- steps ---


@dataclass(frozen=True)
class ReleaseConsumers:
    """Remove these consumers from `reservedFor`, and with the last one the allocation."""

    uids: tuple[str, ...]
    deallocate: bool


@dataclass(frozen=True)
class Deallocate:
    """Clear an unused allocation."""


@dataclass(frozen=True)
class RemoveFinalizer:
    """Remove the finalizer that protects allocated claims."""


@dataclass(frozen=True)
class DeleteClaim:
    """Delete the claim."""


Step = ReleaseConsumers | Deallocate | RemoveFinalizer | DeleteClaim

MUST_GO: Final = frozenset({ConsumerState.DONE, ConsumerState.REPLACED})
"""The states of owners whose claims are deleted. The garbage collector deletes those of absent owners."""


def consumers_left(
    claim: ResourceClaim, done: Container[str]
) -> tuple[ResourceClaimConsumerReference, ...]:
    """The reservations without those of pods (by uid) that are done or gone."""
    return tuple(
        consumer
        for consumer in claim.status.reserved_for
        if not (is_pod(consumer) and consumer.uid in done)
    )


def plan(claim: ResourceClaim, done: Container[str], owner: ConsumerState) -> tuple[Step, ...]:
    """The steps for a claim, in order. Each step applies to the result of the previous one."""
    metadata, status = claim.metadata, claim.status
    left = consumers_left(claim, done)
    is_protected = DELETE_PROTECTION in metadata.finalizers
    is_going = metadata.deletion_timestamp is not None
    steps: list[Step] = []
    if left != status.reserved_for:
        kept = {consumer.uid for consumer in left}
        dropped = tuple(one.uid for one in status.reserved_for if one.uid not in kept)
        deallocate = not left and is_protected and status.allocation is not None
        steps.append(ReleaseConsumers(dropped, deallocate))
        if not left and is_protected:
            steps.append(RemoveFinalizer())
    elif is_going and is_protected and not left:
        if status.allocation is not None:
            steps.append(Deallocate())
        steps.append(RemoveFinalizer())
    if not left and not is_going and owner in MUST_GO:
        steps.append(DeleteClaim())
    return tuple(steps)


def patch_for(
    step: ReleaseConsumers | Deallocate | RemoveFinalizer, claim: ResourceClaim
) -> dict[str, Any]:
    """The step as a strategic merge patch with the resourceVersion as a precondition.

    A patch preserves fields that this version of allot does not know.
    """
    metadata: dict[str, Any] = {
        "uid": claim.metadata.uid,
        "resourceVersion": claim.metadata.resource_version,
    }
    match step:
        case ReleaseConsumers(uids, deallocate):
            gone = [{"$patch": "delete", "uid": uid} for uid in uids]
            status: dict[str, Any] = {"reservedFor": gone}
            return {
                "metadata": metadata,
                "status": status | ({"allocation": None} if deallocate else {}),
            }
        case Deallocate():
            return {"metadata": metadata, "status": {"allocation": None}}
        case RemoveFinalizer():
            metadata["$deleteFromPrimitiveList/finalizers"] = [DELETE_PROTECTION]
            return {"metadata": metadata}


def has_opaque_parameters(claim: ResourceClaim) -> bool:
    """Whether patches may fail: kube-apiserver reads what they make of opaque parameters as a change of them."""
    allocation = claim.status.allocation
    asked = any(config.opaque is not None for config in claim.spec.devices.config)
    return asked or (
        allocation is not None
        and any(config.opaque is not None for config in allocation.devices.config)
    )


def written_by(
    step: ReleaseConsumers | Deallocate | RemoveFinalizer, claim: ResourceClaim
) -> ResourceClaim:
    """The claim after the step, for an update instead of a patch."""
    metadata, status = claim.metadata, claim.status
    match step:
        case ReleaseConsumers(uids, deallocate):
            kept = tuple(consumer for consumer in status.reserved_for if consumer.uid not in uids)
            allocation = None if deallocate else status.allocation
            return replace(claim, status=replace(status, reserved_for=kept, allocation=allocation))
        case Deallocate():
            return replace(claim, status=replace(status, allocation=None))
        case RemoveFinalizer():
            kept_names = tuple(name for name in metadata.finalizers if name != DELETE_PROTECTION)
            return replace(claim, metadata=replace(metadata, finalizers=kept_names))


# --- pods that got their node without the scheduler ---


def lacks_reservation(claim: ResourceClaim, pod_uid: str) -> bool:
    """Whether a bound pod needs a reservation of its allocated claim."""
    status = claim.status
    if status.allocation is None or claim.metadata.deletion_timestamp is not None:
        return False
    for consumer in status.reserved_for:  # noqa: SIM110 - asked at every event of a pod or claim
        if consumer.uid == pod_uid:
            return False
    return True


def reserved_for(claim: ResourceClaim, pod: Pod) -> ResourceClaim:
    """The claim with a reservation for the pod, for an update instead of a patch."""
    consumer = ResourceClaimConsumerReference(
        resource="pods", name=pod.data["metadata"]["name"], uid=uid_of(pod)
    )
    status = claim.status
    return replace(claim, status=replace(status, reserved_for=(*status.reserved_for, consumer)))


def reservation_patch(claim: ResourceClaim, pod: Pod) -> dict[str, Any]:
    consumer = {
        "resource": "pods",
        "name": pod.data["metadata"]["name"],
        "uid": uid_of(pod),
    }
    return {
        "metadata": {
            "uid": claim.metadata.uid,
            "resourceVersion": claim.metadata.resource_version,
        },
        "status": {"reservedFor": [consumer]},
    }
