"""What pods say about their claims, and when they need them no more.

Pods are read as JSON: these functions run for every event of every pod.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from allot.api.core import Pod


class ClaimEntry(NamedTuple):
    """An entry of `spec.resourceClaims`: a claim that exists, or one to be made from a template."""

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
    """The claims that were made for entries, by entry; None where an entry turned out to need none."""
    status = pod.data.get("status") or {}
    return {
        told.get("name") or "": told.get("resourceClaimName")
        for told in status.get("resourceClaimStatuses") or ()
    }


def extended_claim(pod: Pod) -> str:
    """The claim behind the pod's extended resources; empty if there is none."""
    told: dict[str, Any] = (pod.data.get("status") or {}).get("extendedResourceClaimStatus") or {}
    return told.get("resourceClaimName") or ""


def used_claims(pod: Pod) -> list[str]:
    """The names of all claims that the pod refers to, whether they exist or not."""
    entries = claim_entries(pod)
    told = claim_statuses(pod) if entries else {}
    names = [entry.claim_name or told.get(entry.name) or "" for entry in entries]
    return list(dict.fromkeys(filter(None, (*names, extended_claim(pod)))))


def has_claims(pod: Pod) -> bool:
    spec = pod.data.get("spec") or {}
    return bool(spec.get("resourceClaims")) or bool(extended_claim(pod))


def is_deleting(pod: Pod) -> bool:
    return bool(pod.data["metadata"].get("deletionTimestamp"))


def is_done(pod: Pod) -> bool:
    """Whether the pod will never use its claims (again). Once true, it stays so.

    A pod that is deleted before it has a node cannot get one any more.
    """
    return pod.is_finished or (is_deleting(pod) and not pod.node_name)


def uid_of(pod: Pod) -> str:
    return str(pod.data["metadata"].get("uid", ""))
