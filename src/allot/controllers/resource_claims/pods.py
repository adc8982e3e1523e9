"""The claims of a pod, and when the pod no longer needs them.

Pods are read as raw JSON: these functions run for every event of every pod.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from allot.api.core import Pod


class ClaimEntry(NamedTuple):
    """An entry of `spec.resourceClaims`: an existing claim, or one to be created from a template."""

    name: str
    claim_name: str
    template_name: str


def claim_entries(pod: Pod) -> list[ClaimEntry]:
    spec = pod.data.get("spec") or {}
    return [
        ClaimEntry(
            entry.get("name") or "",
            entry.get("resourceClaimName") or "",
            entry.get("resourceClaimTemplateName") or "",
        )
        for entry in spec.get("resourceClaims") or ()
    ]


def claim_statuses(pod: Pod) -> dict[str, str | None]:
    """The claims in `status.resourceClaimStatuses` by entry; None for entries that need no claim."""
    status = pod.data.get("status") or {}
    return {
        entry.get("name") or "": entry.get("resourceClaimName")
        for entry in status.get("resourceClaimStatuses") or ()
    }


def extended_claim(pod: Pod) -> str:
    """The claim for the pod's extended resources; empty if it has none."""
    status: dict[str, Any] = (pod.data.get("status") or {}).get("extendedResourceClaimStatus") or {}
    return status.get("resourceClaimName") or ""


def used_claims(pod: Pod) -> list[str]:
    """The names of all claims that the pod refers to, whether they exist or not."""
    entries = claim_entries(pod)
    statuses = claim_statuses(pod) if entries else {}
    names = [entry.claim_name or statuses.get(entry.name) or "" for entry in entries]
    return list(dict.fromkeys(filter(None, (*names, extended_claim(pod)))))


def has_claims(pod: Pod) -> bool:
    spec = pod.data.get("spec") or {}
    return bool(spec.get("resourceClaims")) or bool(extended_claim(pod))


def is_deleting(pod: Pod) -> bool:
    return bool(pod.data["metadata"].get("deletionTimestamp"))


def is_done(pod: Pod) -> bool:
    """Whether the pod will not use its claims (again). Final once true.

    A pod that is deleted before it is bound cannot be bound any more.
    """
    return pod.is_finished or (is_deleting(pod) and not pod.node_name)


def uid_of(pod: Pod) -> str:
    return str(pod.data["metadata"].get("uid", ""))
