"""The names of a pod's claims."""

from __future__ import annotations

from allot.api.core import Pod


def claim_names(pod: Pod) -> dict[str, str]:
    """The claims of the pod, by their names in its spec. Those that do not exist yet are missing."""
    made = {
        entry.name: entry.resource_claim_name
        for entry in pod.status.resource_claim_statuses
        if entry.resource_claim_name
    }
    return made | {
        entry.name: entry.resource_claim_name
        for entry in pod.spec.resource_claims
        if entry.resource_claim_name
    }
