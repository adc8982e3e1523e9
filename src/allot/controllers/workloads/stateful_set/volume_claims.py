"""The volume claims of pods: created before the pod, and retained after it by default.

whenDeleted: Delete   the set owns them: deleted with it
whenScaled: Delete    a surplus pod owns them: deleted with it
"""

from __future__ import annotations

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.informer import Informer
from allot.client.options import PatchType
from allot.client.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Resource
from allot.controllers.workloads.accessors import (
    Json,
    is_deleting,
    name_of,
    namespace_of,
    uid_of,
)
from allot.controllers.workloads.stateful_set.identity import (
    claim_name,
    claim_templates_of,
    make_claims,
)


class ClaimGoingError(Exception):
    """A claim of that name is being deleted. The pod waits until it can be created again."""


def is_deleted_with(stateful_set: RawObject, event: str) -> bool:
    """Whether claims are deleted when the set is deleted (`whenDeleted`) or scaled down (`whenScaled`)."""
    policy = stateful_set.get("spec", "persistentVolumeClaimRetentionPolicy", event)
    return bool(policy == "Delete")


def owned_by(resource: Resource[RawObject] | Resource[Pod], owner: RawObject) -> Json:
    """An owner reference for garbage collection."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
    }


class VolumeClaims:
    """Creates the claims of stateful sets."""

    def __init__(self, client: Client, claims: Informer[RawObject]) -> None:
        self._client = client
        self._claims = claims

    async def ensure(self, stateful_set: RawObject, ordinal: int) -> None:
        """Create the missing claims of a pod."""
        owner = owned_by(STATEFUL_SETS, stateful_set)
        is_owned = is_deleted_with(stateful_set, "whenDeleted")
        for claim in make_claims(stateful_set, ordinal):
            known = self._claims.get(claim.key)
            if known is None:
                references = [owner] if is_owned else None
                await self._create(claim.with_value(references, "metadata", "ownerReferences"))
            elif is_deleting(known):
                raise ClaimGoingError(f"{claim.key} is being deleted")

    async def _create(self, claim: RawObject) -> None:
        try:
            await self._client.create(PERSISTENT_VOLUME_CLAIMS, claim)
        except ApiStatusError as error:
            if not error.is_already_exists:
                raise

    async def leave_to(self, stateful_set: RawObject, pod: Pod) -> None:
        """Make a surplus pod the owner of its claims, if the retention policy is Delete."""
        if not is_deleted_with(stateful_set, "whenScaled"):
            return
        for template in claim_templates_of(stateful_set):
            key = ObjectKey(namespace_of(stateful_set), claim_name(template, name_of(pod)))
            if self._claims.get(key) is None:
                continue
            patch = {"metadata": {"ownerReferences": [owned_by(PODS, pod)]}}
            try:
                await self._client.patch(PERSISTENT_VOLUME_CLAIMS, key, patch, PatchType.STRATEGIC)
            except ApiStatusError as error:
                if not error.is_not_found:
                    raise
