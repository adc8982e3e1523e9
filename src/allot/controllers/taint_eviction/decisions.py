"""How long a pod may stay on a node with NoExecute taints. Taints and tolerations in, a time out."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from allot.api.core import Node, Pod
from allot.api.taints import NO_EXECUTE, read_tolerations, tolerates
from allot.api.times import read_time

END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)


class NodeTaint(NamedTuple):
    """A NoExecute taint of a node; `added_at` is None if `timeAdded` is not set."""

    key: str
    value: str
    added_at: datetime | None

    @property
    def effect(self) -> str:
        return NO_EXECUTE


def evicting_taints(node: Node) -> tuple[NodeTaint, ...]:
    taints = node.taints
    if not taints:
        return ()
    return tuple(
        NodeTaint(taint.get("key", ""), taint.get("value", ""), read_time(taint.get("timeAdded")))
        for taint in taints
        if taint.get("effect") == NO_EXECUTE
    )


def tolerations_of(pod: Pod) -> list[dict[str, Any]]:
    tolerations: list[dict[str, Any]] = pod.get("spec", "tolerations", default=[])
    return tolerations


def bound_at(pod: Pod) -> datetime | None:
    """When the pod was bound, from the condition PodScheduled or its creation."""
    return pod.true_since("PodScheduled") or read_time(pod.get("metadata", "creationTimestamp"))


def leaves_at(pod: Pod, taints: Iterable[tuple[NodeTaint, datetime]]) -> datetime | None:
    """When the pod is evicted; None if it may stay. Each taint comes with the time at which it was added.

    Of several tolerations of a taint the first applies. A pod that is bound to a node after it was tainted has the
    full toleration time.
    """
    tolerations = tolerations_of(pod)
    parsed = read_tolerations(tolerations)
    came_at = bound_at(pod)
    ends = []
    for taint, since in taints:
        covering = (at for at, each in enumerate(parsed) if tolerates(each, taint))
        first = next(covering, None)
        match None if first is None else tolerations[first]:
            case None:
                ends.append(since)
            case {"tolerationSeconds": int(seconds)}:
                begins = since if came_at is None else max(since, came_at)
                ends.append(_later(begins, max(seconds, 0)))
    return min(ends, default=None)


def _later(moment: datetime, seconds: int) -> datetime:
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return END_OF_TIME
