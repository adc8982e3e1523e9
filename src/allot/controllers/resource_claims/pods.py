"""When a pod no longer needs its claims.

Pods are read as raw JSON: these functions run for every event of every pod.
"""

from __future__ import annotations

from allot.api.core import Pod


def has_claims(pod: Pod) -> bool:
    return bool(pod.claim_entries or pod.extended_claim)


def is_deleting(pod: Pod) -> bool:
    return bool(pod.data["metadata"].get("deletionTimestamp"))


def is_done(pod: Pod) -> bool:
    """Whether the pod will not use its claims (again). Final once true.

    A pod that is deleted before it is bound cannot be bound any more.
    """
    return pod.is_finished or (not pod.node_name and is_deleting(pod))


def uid_of(pod: Pod) -> str:
    uid: str = pod.data["metadata"].get("uid", "")
    return uid
