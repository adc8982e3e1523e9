"""Writes to claims: `status.allocation` and `status.reservedFor` when a pod is bound, and their removal on failure.

Each change is a function of the claim. `claim_write_queue` writes it together with other changes of the same claim, and
applies it again after a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from allot.api.base import replace
from allot.api.claims import (
    MAX_CONSUMERS,
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from allot.api.identities import DeviceId
from allot.api.resource import DELETE_PROTECTION, DEVICE_ALREADY_ALLOCATED
from allot.client.errors import ApiStatusError
from allot.client.resources import PODS, RESOURCE_CLAIMS
from allot.scheduler.plugins.dynamic_resources.claim_write_queue import (
    ClaimChangedError,
    ClaimWriteQueue,
    LookupClaim,
)
from allot.scheduler.plugins.dynamic_resources.pod_claims import is_reserved_for
from allot.scheduler.state.pods import PodInfo
from allot.validation.fields import FieldPath, too_many

if TYPE_CHECKING:
    from allot.client.client import Client
    from allot.scheduler.framework.ordered_binding import OrderedBinding


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
    if allocation is None:
        allocation = status.allocation
    elif now is not None and allocation.allocation_timestamp is None:
        allocation = replace(allocation, allocation_timestamp=now)
    consumers = (*status.reserved_for, consumer_reference(pod))
    return replace(claim, status=replace(status, allocation=allocation, reserved_for=consumers))


def check_still_ours(
    current: ResourceClaim, decided_on: ResourceClaim, allocation: AllocationResult | None
) -> None:
    """`ClaimChangedError` if what we decided for a claim no longer goes with what it is now."""
    replaced = current.metadata.uid != decided_on.metadata.uid
    if replaced or current.metadata.deletion_timestamp is not None:
        raise ClaimChangedError(f"claim {current.key} got deleted in the meantime")
    now = current.status.allocation
    if allocation is None and now is None:
        raise ClaimChangedError(f"claim {current.key} got deallocated elsewhere in the meantime")
    expected = decided_on.status.allocation if allocation is None else None
    if now is not None and (expected is None or not is_same(now, expected)):
        raise ClaimChangedError(f"claim {current.key} got allocated elsewhere in the meantime")


def is_same(allocation: AllocationResult, other: AllocationResult) -> bool:
    """Whether two allocations are one, whenever they were made."""
    return allocation.devices == other.devices and allocation.node_selector == other.node_selector


def is_written(claim: ResourceClaim, pod: PodInfo, allocation: AllocationResult) -> bool:
    """Whether our write arrived although its answer did not."""
    found = claim.status.allocation
    return found is not None and is_same(found, allocation) and is_reserved_for(claim, pod)


def released(claim: ResourceClaim, pod: PodInfo) -> ResourceClaim:
    """The claim without the pod's reservation; without the last one, also without its allocation."""
    left = without_reservation(claim, pod)
    return left if left.status.reserved_for else replace(claim, status=ResourceClaimStatus())


def without_reservation(claim: ResourceClaim, pod: PodInfo) -> ResourceClaim:
    """The claim without the pod; its allocation stays."""
    others = tuple(consumer for consumer in claim.status.reserved_for if consumer.uid != pod.uid)
    return replace(claim, status=replace(claim.status, reserved_for=others))


def held_devices(decided: Iterable[ResourceClaim], error: BaseException) -> list[DeviceId]:
    """The devices that the API server did not let us allocate, because others hold them."""
    refusal = error if isinstance(error, ApiStatusError) else error.__cause__
    if not isinstance(refusal, ApiStatusError):
        return []
    names = {
        cause.get("message")
        for cause in refusal.causes
        if cause.get("reason") == DEVICE_ALREADY_ALLOCATED
    }
    wanted = dict.fromkeys(
        result.device_id
        for claim in decided
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
    )
    return [device for device in wanted if str(device) in names]


class _Reservation:
    """Gives a claim to a pod, with an allocation if it has none yet."""

    def __init__(
        self,
        decided_on: ResourceClaim,
        pod: PodInfo,
        allocation: AllocationResult | None,
        now: datetime | None,
    ) -> None:
        self._decided_on = decided_on
        self._pod = pod
        self._allocation = allocation
        self._now = now
        self._was_tried = False
        self.found_reserved = False
        """Whether the claim was the pod's already when this was last applied."""

    def __call__(self, current: ResourceClaim) -> ResourceClaim:
        allocation = self._allocation
        may_be_ours, self._was_tried = self._was_tried and allocation is not None, True
        self.found_reserved = is_reserved_for(current, self._pod)
        if may_be_ours and allocation is not None and is_written(current, self._pod, allocation):
            return current
        check_still_ours(current, self._decided_on, allocation)
        if self.found_reserved:
            return current
        number = len(current.status.reserved_for) + 1
        if number > MAX_CONSUMERS:
            # What the server would say, without costing others their reservations.
            refusal = f'ResourceClaim.resource.k8s.io "{current.metadata.name}" is invalid'
            limit = too_many(FieldPath("status") / "reservedFor", number, MAX_CONSUMERS)
            raise ClaimChangedError(f"{self.doing}: {refusal}: {limit}")
        protected = current if allocation is None else with_finalizer(current)
        return reserved(protected, self._pod, allocation, self._now)

    @property
    def doing(self) -> str:
        metadata = self._decided_on.metadata
        what = "reservation" if self._allocation is None else "allocation and reservation"
        return f"add {what} to claim {metadata.key}"


class ClaimWriter:
    """Writes claims through the API."""

    def __init__(self, client: Client, known: LookupClaim) -> None:
        self._client = client
        self._queue = ClaimWriteQueue(client, known)

    async def allocate_and_reserve(
        self,
        claim: ResourceClaim,
        pod: PodInfo,
        allocation: AllocationResult | None,
        now: datetime | None,
        found_reserved: Callable[[ResourceClaim], None] = lambda _: None,
        binding: OrderedBinding | None = None,
    ) -> ResourceClaim:
        """The claim after both writes: the finalizer, then the status.

        `claim` is what was decided on. `found_reserved` is told if the claim was reserved already, perhaps by
        another scheduler that has the same pod in hand. `binding` is sent with the write, if it can be.
        """
        change = _Reservation(claim, pod, allocation, now)
        try:
            written = await self._queue.write(claim, change, binding)
        except ApiStatusError as error:
            raise ClaimChangedError(f"{change.doing}: {error.message}") from error
        if change.found_reserved:
            found_reserved(written)
        return written

    async def read_again(self, claim: ResourceClaim) -> ResourceClaim:
        key = claim.key
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

        def change(current: ResourceClaim) -> ResourceClaim:
            is_same_claim = current.metadata.uid == claim.metadata.uid
            if not is_same_claim or not is_reserved_for(current, pod):
                return current
            return without_reservation(current, pod)

        dropped = await self._queue.write(claim, change)
        # Another scheduler may have counted on it and bound the pod while we were at it. It looks at
        # the claim after it has bound the pod, we look at the pod after we changed the claim: one sees the other.
        found = await self._client.find(PODS, pod.key)
        if found is not None and found.metadata.uid == pod.uid and found.node_name:
            return await self.keep_reserved(dropped, pod)
        return dropped

    async def keep_reserved(self, claim: ResourceClaim, pod: PodInfo) -> ResourceClaim | None:
        """Reserve a claim for a bound pod again, if the reservation is gone; None if the claim is gone."""

        def change(current: ResourceClaim) -> ResourceClaim:
            found, held = current.status.allocation, claim.status.allocation
            same = found is not None and held is not None and is_same(found, held)
            if not same or current.metadata.uid != claim.metadata.uid:
                return current  # it holds something else by now
            return current if is_reserved_for(current, pod) else reserved(current, pod, None, None)

        try:
            return await self._queue.write(await self.read_again(claim), change)
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

        def change(current: ResourceClaim) -> ResourceClaim:
            found, held = current.status.allocation, claim.status.allocation
            same = found is not None and held is not None and is_same(found, held)
            # Its reservation may have been taken back a moment ago.
            is_unreserved = not current.status.reserved_for
            if current.metadata.uid != claim.metadata.uid or not same:
                return current
            return (
                released(current, pod)
                if is_unreserved or is_reserved_for(current, pod)
                else current
            )

        try:
            return await self._queue.write(claim, change)
        except ApiStatusError as error:
            if error.is_not_found:
                return None
            raise
