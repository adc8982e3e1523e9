"""Which pods to delete, and why. Objects in, reasons out."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from allot.api.core import Node, Pod
from allot.controllers.pod_disruption import is_deleting

OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"


class CollectionReason(Enum):
    """Why a pod is deleted, as the label in metrics."""

    UNSCHEDULED = "unscheduled"
    """Terminating without a node."""
    OUT_OF_SERVICE = "out-of-service"
    """Terminating on a node that is tainted out-of-service."""
    ORPHANED = "orphaned"
    """Its node is gone."""
    TERMINATED = "terminated"
    """Finished, beyond the threshold."""


def is_out_of_service(node: Node) -> bool:
    """Tainted out-of-service and not ready; a ready node may be tainted by mistake."""
    is_marked = any(taint.get("key") == OUT_OF_SERVICE for taint in node.taints)
    return is_marked and not node.has_condition("Ready")


def reason_to_end(pod: Pod, node: Node | None) -> CollectionReason | None:
    """Why a terminating pod must be deleted by this controller."""
    if not is_deleting(pod) or _is_ended(pod):
        return None
    if not pod.node_name:
        return CollectionReason.UNSCHEDULED
    if node is not None and is_out_of_service(node):
        return CollectionReason.OUT_OF_SERVICE
    return None


def _is_ended(pod: Pod) -> bool:
    """Whether the pod has finished and has no grace period: only finalizers keep it."""
    grace_seconds = pod.get("metadata", "deletionGracePeriodSeconds")
    return pod.is_finished and grace_seconds == 0


def surplus(finished: Iterable[Pod], threshold: int) -> list[Pod]:
    """The finished pods beyond the threshold: evicted pods first, then the oldest."""
    pods = sorted(finished, key=_rank)
    return pods[: max(len(pods) - threshold, 0)]


def _rank(pod: Pod) -> tuple[bool, str, str]:
    is_evicted = pod.phase == "Failed" and pod.get("status", "reason") == "Evicted"
    created: str = pod.get("metadata", "creationTimestamp", default="")
    return not is_evicted, created, pod.metadata.name
