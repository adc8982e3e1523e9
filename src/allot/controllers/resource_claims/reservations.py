"""Updates `status.reservedFor`, and deallocates and deletes unused claims.

Every write has the resourceVersion that the decision was made on. After a conflict the decision is made again.
"""

from __future__ import annotations

import logging
from typing import Final

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.client.client import Client
from allot.client.errors import ApiStatusError, ContentionError
from allot.client.informer import Informer
from allot.client.options import DeleteOptions, PatchType
from allot.client.resources import PODS, RESOURCE_CLAIMS
from allot.controllers.resource_claims.decisions import (
    ConsumerState,
    DeleteClaim,
    RemoveFinalizer,
    Step,
    consumers_left,
    has_opaque_parameters,
    lacks_reservation,
    patch_for,
    plan,
    reservation_patch,
    reserved_for,
    state_in_copy,
    state_on_server,
    written_by,
)
from allot.controllers.resource_claims.indexes import is_pod, owning_pod
from allot.controllers.resource_claims.mutation_cache import DeletedPods
from allot.controllers.resource_claims.pods import is_deleting, is_done, uid_of
from allot.controllers.resource_claims.templates import is_made_for

log = logging.getLogger(__name__)

ATTEMPTS: Final = 5
_GONE: Final = frozenset({ConsumerState.GONE, ConsumerState.REPLACED})


class Reservations:
    """Keeps the reservations of claims in sync with their pods."""

    def __init__(
        self, client: Client, pods: Informer[Pod], claims: Informer[ResourceClaim]
    ) -> None:
        self._client = client
        self._pods = pods
        self._claims = claims
        self._deleted = DeletedPods()

    def pod_deleted(self, uid: str) -> None:
        self._deleted.add(uid)

    # --- claims whose pods are done ---

    def may_need_cleanup(self, claim: ResourceClaim) -> bool:
        """Whether `clean_up` has something to do, or has to ask the server about a pod."""
        namespace = claim.metadata.namespace
        done = set()
        for consumer in claim.status.reserved_for:
            if is_pod(consumer):
                state = self._state_in_copy(ObjectKey(namespace, consumer.name), consumer.uid)
                if state is ConsumerState.UNKNOWN:
                    return True
                if state is not ConsumerState.NEEDED:
                    done.add(consumer.uid)
        state = ConsumerState.NEEDED
        left = consumers_left(claim, done) if done else claim.status.reserved_for
        if not left and (owner := owning_pod(claim)) is not None:
            state = self._state_in_copy(ObjectKey(namespace, owner.name), owner.uid)
        is_needed = state is ConsumerState.NEEDED and not done
        if is_needed and claim.metadata.deletion_timestamp is None:
            return False
        return state is ConsumerState.UNKNOWN or bool(plan(claim, done, state))

    async def clean_up(self, key: ObjectKey) -> None:
        """Remove reservations of pods that are done or gone; deallocate and delete the claim if unused."""
        claim = self._claims.get(key)
        for _ in range(ATTEMPTS):
            if claim is None:
                return
            try:
                for step in await self._plan(claim):
                    claim = await self._take(step, claim)
                return
            except ApiStatusError as error:
                if error.is_not_found:
                    return
                if not error.is_conflict:
                    raise
            claim = await self._client.find(RESOURCE_CLAIMS, key)
        raise ContentionError(f"claim {key} changes faster than it can be written")

    async def _plan(self, claim: ResourceClaim) -> tuple[Step, ...]:
        namespace = claim.metadata.namespace
        done = set()
        for consumer in claim.status.reserved_for:
            if is_pod(consumer):
                pod = ObjectKey(namespace, consumer.name)
                if await self._state(pod, consumer.uid) is not ConsumerState.NEEDED:
                    done.add(consumer.uid)
        owner, state = owning_pod(claim), ConsumerState.NEEDED
        if owner is not None and not consumers_left(claim, done):
            state = await self._state(ObjectKey(namespace, owner.name), owner.uid)
        return plan(claim, done, state)

    async def _state(self, key: ObjectKey, uid: str) -> ConsumerState:
        state = self._state_in_copy(key, uid)
        if state is ConsumerState.UNKNOWN:
            found: Pod | None = await self._client.find(PODS, key)
            state = state_on_server(uid, found)
            if state in _GONE:
                self._deleted.add(uid)
        return state

    def _state_in_copy(self, key: ObjectKey, uid: str) -> ConsumerState:
        return state_in_copy(uid, self._pods.get(key), uid in self._deleted)

    async def _take(self, step: Step, claim: ResourceClaim) -> ResourceClaim:
        """The claim after the step."""
        metadata = claim.metadata
        key = metadata.key
        log.debug("claim %s: %s", key, step)
        if isinstance(step, DeleteClaim):
            options = DeleteOptions(uid=metadata.uid, resource_version=metadata.resource_version)
            await self._client.delete(RESOURCE_CLAIMS, key, options)
            return claim
        subresource = "" if isinstance(step, RemoveFinalizer) else "status"
        if has_opaque_parameters(claim):
            wanted = written_by(step, claim)
            return await self._client.update(RESOURCE_CLAIMS, wanted, subresource=subresource)
        return await self._client.patch(
            RESOURCE_CLAIMS,
            key,
            patch_for(step, claim),
            PatchType.STRATEGIC,
            subresource=subresource,
        )

    # --- pods that got their node without the scheduler ---

    def are_complete(self, pod: Pod) -> bool:
        """Whether the informer shows no allocated claim of a bound pod that is not reserved for it."""
        namespace, uid = pod.key.namespace, uid_of(pod)
        for name in pod.used_claims:
            claim = self._claims.get(ObjectKey(namespace, name))
            if claim is not None and lacks_reservation(claim, uid):
                return False
        return True

    async def add_missing(self, pod: Pod) -> None:
        """Reserve the allocated claims of a bound pod for it."""
        namespace, uid = pod.key.namespace, uid_of(pod)
        for name in pod.used_claims:
            key = ObjectKey(namespace, name)
            claim = self._claims.get(key)
            if claim is not None and lacks_reservation(claim, uid):
                await self._reserve(key, pod)

    async def _reserve(self, key: ObjectKey, pod: Pod) -> None:
        """Read both objects live before writing: the informers may be outdated."""
        for _ in range(ATTEMPTS):
            claim = await self._client.find(RESOURCE_CLAIMS, key)
            if claim is None or not lacks_reservation(claim, uid_of(pod)):
                return
            if _must_be_owned(pod, key.name) and not is_made_for(claim, uid_of(pod)):
                return
            found = await self._client.find(PODS, pod.key)
            if not _may_use_claims(found, uid_of(pod)):
                return
            try:
                if has_opaque_parameters(claim):
                    await self._client.update_status(RESOURCE_CLAIMS, reserved_for(claim, pod))
                    return
                await self._client.patch(
                    RESOURCE_CLAIMS,
                    key,
                    reservation_patch(claim, pod),
                    PatchType.STRATEGIC,
                    subresource="status",
                )
                return
            except ApiStatusError as error:
                if error.is_not_found:
                    return
                if not error.is_conflict:
                    raise
        raise ContentionError(f"claim {key} changes faster than it can be written")


def _may_use_claims(pod: Pod | None, uid: str) -> bool:
    return (
        pod is not None
        and uid_of(pod) == uid
        and bool(pod.node_name)
        and not is_done(pod)
        and not is_deleting(pod)
    )


def _must_be_owned(pod: Pod, claim_name: str) -> bool:
    """Whether the claim must be owned by the pod, because it was created for it."""
    named = any(entry.claim_name == claim_name for entry in pod.claim_entries)
    return not named or claim_name == pod.extended_claim
