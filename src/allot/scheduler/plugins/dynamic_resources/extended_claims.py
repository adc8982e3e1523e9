"""The claim behind a pod's extended resources: decided in memory, made when the pod is bound.

    filter: one variant per kind of node ─► reserve: in flight under a uid of our own
      ─► pre_bind: create it ─► in flight under its real uid ─► allocate ─► tell the pod ─► wait until it is seen
      ─► (binding fails) ─► unreserve: remove it

A claim that an earlier attempt left over says nothing about this one: it is removed, and the pod tried again.
A recent one of another scheduler, which may be about to bind the pod, is left alone for a while.
What the claim asks for is decided in `extended_resources` and `pod_extension`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from allot.api.base import replace
from allot.api.claims import AllocationResult, ResourceClaim
from allot.api.core import ContainerExtendedResourceRequest
from allot.client.errors import ApiStatusError, ClientError
from allot.client.options import DeleteOptions
from allot.client.resources import PODS, RESOURCE_CLAIMS
from allot.scheduler.framework.concurrency_limit import released_slot
from allot.scheduler.plugins.dynamic_resources.claim_write_queue import ATTEMPTS, ClaimChangedError
from allot.scheduler.plugins.dynamic_resources.claim_writes import ClaimWriter
from allot.scheduler.plugins.dynamic_resources.pod_extension import (
    PodExtension,
    Variant,
    claim_to_create,
    extended_claim_pod,
    extension_of,
    named_in_status,
    without_finalizer,
)
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.extended_resource_classes import ResourceClasses
from allot.scheduler.state.pods import PodInfo

if TYPE_CHECKING:
    from allot.client.client import Client

log = logging.getLogger(__name__)

SEEN_WITHIN_SECONDS: Final = 120.0
BOUND_WITHIN_SECONDS: Final = 15.0
"""How long others have to bind the pod for which they made a claim."""
MAX_REMEMBERED: Final = 1000
NAME_ATTEMPTS: Final = 10
"""Names that are tried when claims of other owners have them."""

Spawn = Callable[[Coroutine[Any, Any, None]], object]
"""Lets something be done beside the next decision."""


class ExtendedClaims:
    """Knows the claims behind extended resources, makes them and removes them."""

    def __init__(
        self,
        client: Client,
        writer: ClaimWriter,
        tracker: ClaimTracker,
        classes: ResourceClasses,
        clock: Callable[[], datetime],
        observe: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """`observe` is told of every claim that is created, or (False) could not be."""
        self._client = client
        self._writer = writer
        self._tracker = tracker
        self._classes = classes
        self._clock = clock
        self._observe = observe
        self._made: set[str] = set()
        """Uids of claims that we made."""
        self._maybe_created: deque[str] = deque(maxlen=MAX_REMEMBERED)
        """Uids of pods for which we may have made a claim without hearing of it."""
        self._by_pod: dict[str, dict[str, ResourceClaim]] = {}
        """By the uids of the pod and of the claim."""
        self._waiters: dict[str, asyncio.Event] = {}
        self._being_removed: dict[str, ResourceClaim] = {}
        """In flight until they are gone, by uid."""
        tracker.add_listener(self._on_claim_change)

    # --- what is there ---

    def _on_claim_change(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = new or old
        assert claim is not None
        pod_uid = extended_claim_pod(claim)
        if pod_uid is None:
            return
        uid = claim.metadata.uid
        if new is not None:
            self._by_pod.setdefault(pod_uid, {})[uid] = new
            if waiter := self._waiters.get(uid):
                waiter.set()
            return
        self._forget(pod_uid, uid)
        # Before the queue hears of it: the pods it wakes shall find the devices free.
        if going := self._being_removed.pop(uid, None):
            self._tracker.remove_pending_allocation(going)

    def _forget(self, pod_uid: str, uid: str) -> None:
        claims = self._by_pod.get(pod_uid, {})
        claims.pop(uid, None)
        self._made.discard(uid)
        if not claims:
            self._by_pod.pop(pod_uid, None)

    def find_extension(self, pod: PodInfo) -> PodExtension | None:
        """What the pod needs for its extended resources; None if devices have nothing to do with them."""
        left_over = tuple(self._by_pod.get(pod.uid, {}).values())
        return extension_of(pod, self._classes.class_of, left_over)

    # --- a pod gets a node ---

    def reserve(
        self, extension: PodExtension, variant: Variant, allocation: AllocationResult
    ) -> None:
        """Take the devices for the claim, as a pending allocation."""
        extension.mappings = variant.mappings
        self._set_pending_allocation(extension, variant.claim, allocation)

    def _set_pending_allocation(
        self, extension: PodExtension, claim: ResourceClaim, allocation: AllocationResult
    ) -> None:
        status = replace(claim.status, allocation=allocation)
        before, extension.reserved = extension.reserved, replace(claim, status=status)
        self._tracker.add_pending_allocation(extension.reserved)
        if before is not None:
            self._tracker.remove_pending_allocation(before)

    async def bind(
        self, extension: PodExtension, now: datetime | None
    ) -> tuple[ResourceClaim, ...]:
        """Make the claim, give it its devices, and tell the pod; `ClaimChangedError` or `ClientError` if not.

        The claim comes back, if the pod needs one.
        """
        pod, decided = extension.pod, extension.reserved
        if decided is None:
            if pod.claim_statuses[1]:  # from an attempt on another node
                await self._update_pod_status(pod, None)
            return ()
        allocation = decided.status.allocation
        assert allocation is not None
        created = extension.created = await self._create(decided, pod)
        self._set_pending_allocation(extension, created, allocation)
        written = await self._writer.allocate_and_reserve(created, pod, allocation, now)
        await self._update_pod_status(pod, written.metadata.name, extension.mappings)
        if not await self._is_seen(created):
            raise ClaimChangedError(
                f"claim {pod.namespace}/{created.metadata.name} is not seen after it was created"
            )
        self._tracker.assume(written)
        self._remove_pending_allocation(extension)
        return (written,)

    async def _create(self, claim: ResourceClaim, pod: PodInfo) -> ResourceClaim:
        try:
            created = await self._create_with_free_name(claim, pod)
        except ClientError as error:
            if not (isinstance(error, ApiStatusError) and error.is_already_exists):
                self._maybe_created.append(pod.uid)
            self._observe(False)
            raise
        self._made.add(created.metadata.uid)
        # The next attempt must know of it, even if the informer does not show it by then.
        self._by_pod.setdefault(pod.uid, {})[created.metadata.uid] = created
        self._observe(True)
        return created

    async def _create_with_free_name(self, claim: ResourceClaim, pod: PodInfo) -> ResourceClaim:
        """Names of other owners' claims are passed over; `ApiStatusError` if the pod has a claim already."""
        for attempt in range(NAME_ATTEMPTS):
            wanted = claim_to_create(claim, attempt)
            try:
                return await self._client.create(RESOURCE_CLAIMS, wanted)
            except ApiStatusError as error:
                if not error.is_already_exists or attempt == NAME_ATTEMPTS - 1:
                    raise
                existing = await self._client.find(RESOURCE_CLAIMS, wanted.key)
                if existing is None or extended_claim_pod(existing) == pod.uid:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _update_pod_status(
        self,
        pod: PodInfo,
        name: str | None,
        mappings: tuple[ContainerExtendedResourceRequest, ...] = (),
    ) -> None:
        """Write the name of the claim into the pod's status, unless another scheduler wrote one since."""
        status: dict[str, Any] | None = None
        if name is not None:
            shown = [_as_json(mapping) for mapping in mappings]
            status = {"resourceClaimName": name, "requestMappings": shown}
        known = named_in_status(pod.pod)
        version = pod.pod.metadata.resource_version
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._patch_pod_status(pod, version, status)
                return
            except ApiStatusError as error:
                if not error.is_conflict or attempt == ATTEMPTS:
                    raise
            current = await self._client.get(PODS, pod.key)
            named = named_in_status(current)
            if current.metadata.uid == pod.uid and named == (name or ""):
                return
            if current.metadata.uid != pod.uid or named not in ("", known):
                raise ClaimChangedError(f"pod {pod.key} got claim {named} in the meantime")
            version = current.metadata.resource_version

    async def _is_seen(self, claim: ResourceClaim) -> bool:
        """Wait until the informer shows a claim that we made; false if it does not."""
        uid = claim.metadata.uid
        key = claim.key
        known = self._tracker.get(key)
        if known is not None and known.metadata.uid == uid:
            return True
        waiter = self._waiters[uid] = asyncio.Event()
        try:
            async with released_slot(), asyncio.timeout(SEEN_WITHIN_SECONDS):
                await waiter.wait()
        except TimeoutError:
            return False
        finally:
            del self._waiters[uid]
        return True

    def _remove_pending_allocation(self, extension: PodExtension) -> None:
        if extension.reserved is not None:
            self._tracker.remove_pending_allocation(extension.reserved)
            extension.reserved = None

    # --- a pod does not get its node after all ---

    def unreserve(self, extension: PodExtension, spawn: Spawn) -> None:
        """Forget the devices. A claim that was made already is removed beside the next decision."""
        created, reserved = extension.created, extension.reserved
        if created is None:
            self._remove_pending_allocation(extension)
            return
        if reserved is not None:
            self._being_removed[created.metadata.uid] = reserved
        spawn(self._remove_created(extension, created))

    async def _remove_created(self, extension: PodExtension, created: ResourceClaim) -> None:
        """Until the claim is gone its devices are taken, whether the informer has shown it or not."""
        try:
            if not await self.remove(created, extension.pod):
                await self._is_seen(created)
        except ClientError as error:
            log.warning(
                "claim %s of pod %s stays: %s", created.metadata.name, extension.pod.key, error
            )
            await self._is_seen(created)
        finally:
            self._being_removed.pop(created.metadata.uid, None)
            self._remove_pending_allocation(extension)

    async def remove_left_over(self, extension: PodExtension) -> None:
        """Delete claims of earlier attempts; `ClaimChangedError` if one may be in use."""
        pod = extension.pod
        for claim in extension.left_over:
            if not self._is_left_over(claim, pod):
                name = f"{pod.namespace}/{claim.metadata.name}"
                raise ClaimChangedError(f"claim {name} got created elsewhere in the meantime")
            await self.remove(claim, pod)

    def _is_left_over(self, claim: ResourceClaim, pod: PodInfo) -> bool:
        made_at = claim.metadata.creation_timestamp
        return (
            claim.metadata.uid in self._made
            or pod.uid in self._maybe_created
            or made_at is None
            or (self._clock() - made_at).total_seconds() > BOUND_WITHIN_SECONDS
        )

    async def remove(self, claim: ResourceClaim, pod: PodInfo) -> bool:
        """Delete a claim that its pod does not use. False: the pod is bound with this claim, it must stay."""
        key = claim.key
        if not await self._is_let_go(pod, key.name):
            return False

        def released(found: ResourceClaim) -> ResourceClaim:
            return without_finalizer(found) if found.metadata.uid == claim.metadata.uid else found

        try:
            await self._client.update_with_retry(RESOURCE_CLAIMS, key, released)
            await self._client.delete(RESOURCE_CLAIMS, key, DeleteOptions(uid=claim.metadata.uid))
        except ApiStatusError as error:
            # A conflict: another claim has this name now.
            if not (error.is_not_found or error.is_conflict):
                raise
        known = self._tracker.get(key)
        if known is None or known.metadata.uid != claim.metadata.uid:
            # No informer will tell that a claim is gone that it never showed.
            self._forget(pod.uid, claim.metadata.uid)
            self._tracker.notify_released(claim)
        return True

    async def _is_let_go(self, pod: PodInfo, name: str) -> bool:
        """Take a claim out of its pod's status; false if the pod is bound with it."""
        for attempt in range(1, ATTEMPTS + 1):
            current = await self._client.find(PODS, pod.key)
            if current is None or current.metadata.uid != pod.uid:
                return True
            if named_in_status(current) != name:
                return True
            if current.node_name:
                return False
            try:
                # Only if nothing happens to the pod meanwhile, such as a binding.
                await self._patch_pod_status(pod, current.metadata.resource_version, None)
                return True
            except ApiStatusError as error:
                if not error.is_conflict or attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _patch_pod_status(
        self, pod: PodInfo, version: str, status: dict[str, Any] | None
    ) -> None:
        patch: dict[str, Any] = {
            "metadata": {"uid": pod.uid, "resourceVersion": version},
            "status": {"extendedResourceClaimStatus": status},
        }
        await self._client.patch(PODS, pod.key, patch, subresource="status")


def _as_json(mapping: ContainerExtendedResourceRequest) -> dict[str, str]:
    return {
        "containerName": mapping.container_name,
        "resourceName": mapping.resource_name,
        "requestName": mapping.request_name,
    }
