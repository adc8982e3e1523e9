"""Which pods are to be collected, and why. Objects in, reasons out."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

from allot.api.core import Node, Pod
from allot.controllers.pod_disruption import is_deleting

OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"


class CollectionReason(Enum):
    """Why a pod is collected, as metrics say it."""

    UNSCHEDULED = "unscheduled"
    """It is to be deleted, and there is no node that could do so."""
    OUT_OF_SERVICE = "out-of-service"
    """It is to be deleted, and somebody has said that its node will not do so."""
    ORPHANED = "orphaned"
    """Its node is gone."""
    TERMINATED = "terminated"
    """It has finished, and there are too many of those."""


def is_ready(node: Node) -> bool:
    conditions: list[dict[str, Any]] = node.get("status", "conditions", default=[])
    return any(
        found.get("type") == "Ready" and found.get("status") == "True" for found in conditions
    )


def is_out_of_service(node: Node) -> bool:
    """Marked as such by its administrator, and not ready: one that is could be wrongly marked."""
    is_marked = any(taint.get("key") == OUT_OF_SERVICE for taint in node.taints)
    return is_marked and not is_ready(node)


def reason_to_end(pod: Pod, node: Node | None) -> CollectionReason | None:
    """Why a pod that is to be deleted will not be, unless it is ended from here."""
    if not is_deleting(pod) or _is_ended(pod):
        return None
    if not pod.node_name:
        return CollectionReason.UNSCHEDULED
    if node is not None and is_out_of_service(node):
        return CollectionReason.OUT_OF_SERVICE
    return None


def _is_ended(pod: Pod) -> bool:
    """Whether all that can be done has been: what keeps the pod now are its finalizers."""
    grace_seconds = pod.get("metadata", "deletionGracePeriodSeconds")
    return pod.is_finished and grace_seconds == 0


def surplus(finished: Iterable[Pod], threshold: int) -> list[Pod]:
    """The finished pods that are too many: first those that were evicted, then the oldest."""
    pods = sorted(finished, key=_rank)
    return pods[: max(len(pods) - threshold, 0)]


def _rank(pod: Pod) -> tuple[bool, str, str]:
    is_evicted = pod.phase == "Failed" and pod.get("status", "reason") == "Evicted"
    created: str = pod.get("metadata", "creationTimestamp", default="")
    return not is_evicted, created, pod.metadata.name
