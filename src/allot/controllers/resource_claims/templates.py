"""The claim for an entry of a pod: its name, its content, and reasons not to create it.

The name looks generated, but its suffix is derived from the pod's uid. Creating the claim is therefore idempotent:
after a lost response, with an outdated informer, or with two controllers at once, only one claim is created.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.generated_names import suffix_of
from allot.api.identities import ObjectKey
from allot.api.lazy import lazy
from allot.api.raw import RawObject
from allot.api.resource import POD_CLAIM_NAME
from allot.controllers.resource_claims.indexes import owning_pod
from allot.controllers.resource_claims.metrics import Uses
from allot.controllers.resource_claims.pods import uid_of
from allot.features import ADMIN_ACCESS, PRIORITIZED_LIST, FeatureGates

MAX_BASE: Final = 57
"""Leaves room for a hyphen and the suffix in a name of 63 characters."""

NO_ADMIN_ACCESS: Final = "admin access is requested, but the feature is disabled"
NO_PRIORITIZED_LIST: Final = (
    "template includes a prioritized list of subrequests, but the feature is disabled"
)


class ClaimTemplate(RawObject):
    """A ResourceClaimTemplate as raw JSON: its spec is copied, not interpreted. Many claims are made from one."""

    @lazy
    def labels(self) -> Mapping[str, str]:
        labels: Mapping[str, str] = self.get("spec", "metadata", "labels", default={})
        return labels

    @lazy
    def annotations(self) -> Mapping[str, str]:
        annotations: Mapping[str, str] = self.get("spec", "metadata", "annotations", default={})
        return annotations

    @lazy
    def claim_spec(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = self.get("spec", "spec", default={})
        return spec

    @lazy
    def wants_admin_access(self) -> bool:
        requests = self._requests()
        return any((request.get("exactly") or {}).get("adminAccess") for request in requests)

    @lazy
    def has_prioritized_list(self) -> bool:
        return any(request.get("firstAvailable") for request in self._requests())

    @lazy
    def uses(self) -> Uses:
        return Uses(self.wants_admin_access, self.has_prioritized_list)

    def _requests(self) -> list[dict[str, Any]]:
        requests: list[dict[str, Any]] = self.get("spec", "spec", "devices", "requests", default=[])
        return requests


def name_base(pod_name: str, entry_name: str) -> str:
    """The prefix of the claim's name. If both names are too long, they are truncated in proportion."""
    length = len(pod_name) + 1 + len(entry_name)
    if length > MAX_BASE:
        pod_name = pod_name[: len(pod_name) * MAX_BASE // length].rstrip("-.")
        entry_name = entry_name[: len(entry_name) * MAX_BASE // length].rstrip("-")
    return f"{pod_name}-{entry_name}-"


def name_suffix(pod_uid: str, entry_name: str, attempt: int = 0) -> str:
    """The suffix of the claim's name. `attempt` gives another one if the name is in use."""
    digest = hashlib.sha256(f"{pod_uid}/{entry_name}/{attempt}".encode()).digest()
    return suffix_of(int.from_bytes(digest[:8]))


def claim_key(pod: Pod, entry_name: str, attempt: int = 0) -> ObjectKey:
    namespace, pod_name = pod.key
    suffix = name_suffix(uid_of(pod), entry_name, attempt)
    return ObjectKey(namespace, name_base(pod_name, entry_name) + suffix)


def claim_from(template: ClaimTemplate, pod: Pod, entry_name: str, name: str) -> RawObject:
    """The claim to create. Unknown fields of the template's spec are copied."""
    namespace, pod_name = pod.key
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod_name,
        "uid": uid_of(pod),
        "controller": True,
    }
    # In the order in which API servers write it, which they read in fewer steps.
    metadata: dict[str, Any] = {
        "name": name,
        "generateName": name_base(pod_name, entry_name),
        "namespace": namespace,
    }
    if template.labels:
        metadata["labels"] = template.labels
    metadata["annotations"] = {**template.annotations, POD_CLAIM_NAME: entry_name}
    metadata["ownerReferences"] = [owner]
    return RawObject({"metadata": metadata, "spec": template.claim_spec})


def refusal(template: ClaimTemplate, gates: FeatureGates) -> str | None:
    """Why no claim can be created from a template with these feature gates."""
    if ADMIN_ACCESS not in gates and template.wants_admin_access:
        return NO_ADMIN_ACCESS
    if PRIORITIZED_LIST not in gates and template.has_prioritized_list:
        return NO_PRIORITIZED_LIST
    return None


def claim_already_made(
    claims: Iterable[ResourceClaim], pod_uid: str, entry_name: str
) -> ResourceClaim | None:
    """The claim that was created for an entry, but is not in the pod's status: the oldest if there are several."""
    made = [
        claim
        for claim in claims
        if claim.metadata.annotations.get(POD_CLAIM_NAME) == entry_name
        and claim.metadata.deletion_timestamp is None
        and is_made_for(claim, pod_uid)
    ]
    return min(made, key=_age_and_name, default=None)


def is_made_for(claim: ResourceClaim, pod_uid: str) -> bool:
    owner = owning_pod(claim)
    return owner is not None and owner.uid == pod_uid


def _age_and_name(claim: ResourceClaim) -> tuple[float, str]:
    created = claim.metadata.creation_timestamp
    return (created.timestamp() if created is not None else 0.0, claim.metadata.name)


def claim_statuses_to_write(
    pod: Pod, claim_by_entry: Mapping[str, str]
) -> list[dict[str, str]] | None:
    """`status.resourceClaimStatuses` with these claims, sorted; None if nothing changes."""
    known = pod.claim_statuses
    wanted = {**known, **claim_by_entry}
    if wanted == known:
        return None
    statuses = []
    for entry, claim in sorted(wanted.items()):
        statuses.append({"name": entry, **({"resourceClaimName": claim} if claim else {})})
    return statuses
