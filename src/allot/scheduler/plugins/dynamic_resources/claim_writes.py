"""What is written to claims when a pod is bound, and what is taken back when that fails.

Each change is a function of the claim; the loops around them read again and retry when somebody was quicker.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from allot.api.base import replace
from allot.api.claims import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from allot.api.identities import ObjectKey
from allot.api.resource import DELETE_PROTECTION
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.options import PatchType
from allot.client.resources import PODS, RESOURCE_CLAIMS
from allot.scheduler.plugins.dynamic_resources.pod_claims import is_reserved_for
from allot.scheduler.state.pods import PodInfo

ATTEMPTS: Final = 5


class ClaimChangedError(Exception):
    """Somebody did something to a claim that makes our decision wrong."""


def consumer_reference(pod: PodInfo) -> ResourceClaimConsumerReference:
    return ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)


def with_finalizer(claim: ResourceClaim) -> ResourceClaim:
    finalizers = claim.metadata.finalizers
    if DELETE_PROTECTION in finalizers:
        return claim
    metadata = replace(claim.metadata, finalizers=(*finalizers, DELETE_PROTECTION))
    return replace(claim, metadata=metadata)


def reserved(
    claim: ResourceClaim, pod: PodInfo, allocation: AllocationResult | None, now: datetime | None
) -> ResourceClaim:
    """The claim with the allocation we decided on, if any, and a reservation for the pod.

    `now` becomes the time of the allocation, where that is recorded.
    """
    status = claim.status
    if allocation is not None:
        if now is not None and allocation.allocation_timestamp is None:
            allocation = replace(allocation, allocation_timestamp=now)
        status = replace(status, allocation=allocation)
    consumers = (*status.reserved_for, consumer_reference(pod))
    return replace(claim, status=replace(status, reserved_for=consumers))


def check_still_ours(
    current: ResourceClaim, decided_on: ResourceClaim, allocation: AllocationResult | None
) -> None:
    """`ClaimChangedError` if what we decided for a claim no longer goes with what it is now."""
    name = f"{current.metadata.namespace}/{current.metadata.name}"
    replaced = current.metadata.uid != decided_on.metadata.uid
    if replaced or current.metadata.deletion_timestamp is not None:
        raise ClaimChangedError(f"claim {name} got deleted in the meantime")
    now = current.status.allocation
    if allocation is None and now is None:
        raise ClaimChangedError(f"claim {name} got deallocated elsewhere in the meantime")
    expected = decided_on.status.allocation if allocation is None else None
    if now is not None and (expected is None or not is_same(now, expected)):
        raise ClaimChangedError(f"claim {name} got allocated elsewhere in the meantime")


def is_same(allocation: AllocationResult, other: AllocationResult) -> bool:
    """Whether two allocations are one, whenever they were made."""
    return allocation.devices == other.devices and allocation.node_selector == other.node_selector


def is_written(claim: ResourceClaim, pod: PodInfo, allocation: AllocationResult) -> bool:
    """Whether our write arrived although its answer did not."""
    found = claim.status.allocation
    return found is not None and is_same(found, allocation) and is_reserved_for(claim, pod)


def released(claim: ResourceClaim, pod: PodInfo) -> ResourceClaim:
    """The claim without the pod; when nobody else uses it, without its allocation too."""
    others = tuple(consumer for consumer in claim.status.reserved_for if consumer.uid != pod.uid)
    if not others:
        return replace(claim, status=ResourceClaimStatus())
    return replace(claim, status=replace(claim.status, reserved_for=others))


class ClaimWriter:
    """Writes claims through the API."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def allocate_and_reserve(
        self,
        claim: ResourceClaim,
        pod: PodInfo,
        allocation: AllocationResult | None,
        now: datetime | None,
        newest: ResourceClaim | None = None,
        found_reserved: Callable[[ResourceClaim], None] = lambda _: None,
    ) -> ResourceClaim:
        """The claim after both writes: the finalizer, then the status.

        `claim` is what was decided on, `newest` what is known by now. `found_reserved` is told if the claim
        was reserved already, perhaps by another scheduler that has the same pod in hand.
        """
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        doing = "add reservation to" if allocation is None else "add allocation and reservation to"
        current = newest or claim
        for attempt in range(1, ATTEMPTS + 1):
            if attempt > 1 and allocation is not None and is_written(current, pod, allocation):
                found_reserved(current)
                return current
            check_still_ours(current, claim, allocation)
            if is_reserved_for(current, pod):
                found_reserved(current)
                return current
            try:
                if allocation is not None:
                    current = await self._protected(current)
                wanted = reserved(current, pod, allocation, now)
                return await self._client.update_status(RESOURCE_CLAIMS, wanted)
            except ApiStatusError as error:
                if not error.is_conflict or attempt == ATTEMPTS:
                    raise ClaimChangedError(f"{doing} claim {key}: {error.message}") from error
            current = await self._client.get(RESOURCE_CLAIMS, key)
        raise AssertionError("the last attempt returns or raises")

    async def _protected(self, claim: ResourceClaim) -> ResourceClaim:
        wanted = with_finalizer(claim)
        if wanted is claim:
            return claim
        return await self._client.update(RESOURCE_CLAIMS, wanted)

    async def read_again(self, claim: ResourceClaim) -> ResourceClaim:
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        return await self._client.get(RESOURCE_CLAIMS, key)

    async def drop_reservation(self, claim: ResourceClaim, pod: PodInfo) -> ResourceClaim | None:
        """Take the pod out of the claim's reservations; the allocation stays, unless the pod is gone.

        None: nothing was done, because the pod got a node after all, from us or from another scheduler.
        """
        found = await self._client.find(PODS, pod.key)
        if found is None or found.metadata.uid != pod.uid:
            return await self.release(claim, pod)
        if found.node_name:
            return None
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        patch: dict[str, Any] = {
            "metadata": {"uid": claim.metadata.uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": pod.uid}]},
        }
        dropped = await self._client.patch(
            RESOURCE_CLAIMS, key, patch, PatchType.STRATEGIC, subresource="status"
        )
        # Another scheduler may have counted on it and bound the pod while we were at it. It looks at
        # the claim after it has bound the pod, we look at the pod after we changed the claim: one sees the other.
        found = await self._client.find(PODS, pod.key)
        if found is not None and found.metadata.uid == pod.uid and found.node_name:
            return await self.keep_reserved(dropped, pod)
        return dropped

    async def keep_reserved(self, claim: ResourceClaim, pod: PodInfo) -> ResourceClaim | None:
        """Reserve a claim for a bound pod again, if somebody took that back; None if it is gone."""
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)

        def change(current: ResourceClaim) -> ResourceClaim:
            found, held = current.status.allocation, claim.status.allocation
            same = found is not None and held is not None and is_same(found, held)
            if not same or current.metadata.uid != claim.metadata.uid:
                return current  # it holds something else by now
            return current if is_reserved_for(current, pod) else reserved(current, pod, None, None)

        try:
            return await self._client.update_with_retry(
                RESOURCE_CLAIMS, key, change, subresource="status"
            )
        except ApiStatusError as error:
            if error.is_not_found:
                return None
            raise

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Clear everything the status says, so that the claim can be allocated anew."""
        cleared = replace(claim, status=ResourceClaimStatus())
        return await self._client.update_status(RESOURCE_CLAIMS, cleared)

    async def release(self, claim: ResourceClaim, pod: PodInfo) -> ResourceClaim | None:
        """Let go of a claim that the pod held, so that it can be allocated anew; None if it is gone.

        A claim that others hold by now, or that was allocated anew, is left alone.
        """
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)

        def change(current: ResourceClaim) -> ResourceClaim:
            found, held = current.status.allocation, claim.status.allocation
            same = found is not None and held is not None and is_same(found, held)
            # Its reservation may have been taken back a moment ago.
            nobodys = not current.status.reserved_for
            if current.metadata.uid != claim.metadata.uid or not same:
                return current
            return released(current, pod) if nobodys or is_reserved_for(current, pod) else current

        try:
            return await self._client.update_with_retry(
                RESOURCE_CLAIMS, key, change, subresource="status", start=claim
            )
        except ApiStatusError as error:
            if error.is_not_found:
                return None
            raise
