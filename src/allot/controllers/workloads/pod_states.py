"""States of a pod: active, ready, available."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from allot.api.core import Pod
from allot.controllers.workloads.accessors import (
    is_deleting,
)


def is_active(pod: Pod) -> bool:
    """Whether it is neither finished nor being deleted."""
    return not pod.is_finished and not is_deleting(pod)


def is_terminating(pod: Pod) -> bool:
    """Whether it is being deleted and has not finished."""
    return is_deleting(pod) and not pod.is_finished


def is_ready(pod: Pod) -> bool:
    return pod.has_condition("Ready")


def ready_since(pod: Pod) -> datetime | None:
    """When it became ready; None if it is not."""
    return pod.true_since("Ready")


def is_available(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Whether it has been ready for `minReadySeconds`."""
    if not is_ready(pod):
        return False
    if not min_ready_seconds:
        return True
    since = ready_since(pod)
    return since is not None and since + timedelta(seconds=min_ready_seconds) <= now


def seconds_until_available(
    pods: Iterable[Pod], min_ready_seconds: int, now: datetime
) -> float | None:
    """Seconds until the next ready pod becomes available; None if all ready pods are."""
    if not min_ready_seconds:
        return None
    moments = [
        since + timedelta(seconds=min_ready_seconds)
        for since in map(ready_since, pods)
        if since is not None
    ]
    waits = [(moment - now).total_seconds() for moment in moments if moment > now]
    return min(waits, default=None)


def restarts_of(pod: Pod) -> int:
    """The sum of the restart counts of its containers."""
    return sum(
        int(status.get("restartCount", 0))
        for field in ("containerStatuses", "initContainerStatuses")
        for status in pod.get("status", field, default=())
    )
