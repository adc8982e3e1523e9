"""The order in which surplus pods are deleted.

no node  <  has a node
Pending  <  Unknown  <  Running
not ready  <  ready
low deletion cost (annotation)  <  high
many on its node  <  few on its node
ready for a short time  <  for a long time, in powers of two
many restarts  <  few
young  <  old
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from math import log2
from typing import Final

from allot.api.core import Pod
from allot.controllers.workloads.accessors import annotations_of, created_at, name_of
from allot.controllers.workloads.pod_states import is_ready, ready_since, restarts_of

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}

Rank = tuple[bool, int, bool, int, int, int, int, int, str]


def pods_to_delete(
    pods: Iterable[Pod], count: int, related: Iterable[Pod], now: datetime
) -> list[Pod]:
    """The first `count` pods in deletion order. `related` are all pods of the same application."""
    ranked = list(pods)
    if count < len(ranked):
        crowd = Counter(pod.node_name for pod in related if pod.node_name)
        ranked.sort(key=lambda pod: _rank(pod, crowd, now))
    return ranked[:count]


def _rank(pod: Pod, crowd: Mapping[str, int], now: datetime) -> Rank:
    ready = ready_since(pod)
    ready_seconds = (now - ready).total_seconds() if ready else 0.0
    age = (now - created_at(pod)).total_seconds()
    return (
        bool(pod.node_name),
        _PHASES.get(pod.phase, 0),
        is_ready(pod),
        deletion_cost(pod),
        -crowd.get(pod.node_name, 0),
        _magnitude(ready_seconds),
        -restarts_of(pod),
        _magnitude(age),
        name_of(pod),
    )


def _magnitude(seconds: float) -> int:
    """Rounds to powers of two: similar durations compare equal."""
    return int(log2(seconds)) if seconds >= 1 else -1


def deletion_cost(pod: Pod) -> int:
    """The annotation's value; zero if it is not a number."""
    try:
        return int(annotations_of(pod).get(DELETION_COST, "0"))
    except ValueError:
        return 0
