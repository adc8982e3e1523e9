"""Which daemon pods to create and which to delete, node by node.

An update replaces pods of another revision. Without surge the old pod is deleted first, up to maxUnavailable at a time;
with surge a new pod is created first, and the old one is deleted when the new one is available.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.controllers.workloads.accessors import (
    Json,
    created_at,
    generation_of,
    is_deleting,
    labels_of,
    min_ready_seconds_of,
    name_of,
)
from allot.controllers.workloads.daemon_set.nodes import NOT_PLACED, DaemonPlacement
from allot.controllers.workloads.daemon_set.pods import node_of
from allot.controllers.workloads.int_or_percent import resolve
from allot.controllers.workloads.pod_states import is_available, is_ready
from allot.controllers.workloads.revisions import REVISION_HASH

PodsByNode = Mapping[str, Sequence[Pod]]


class DaemonSetPlan(NamedTuple):
    """Nodes that need a pod, and pods to delete."""

    create_on: tuple[str, ...]
    delete: tuple[Pod, ...]
    finished: tuple[Pod, ...]
    """Finished pods, which are replaced with a backoff."""


class UpdateBounds(NamedTuple):
    """maxUnavailable and maxSurge as counts."""

    unavailable: int
    surge: int


def group_by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Oldest first on each node."""
    found: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in sorted(pods, key=lambda pod: (created_at(pod), name_of(pod))):
        found[node_of(pod)].append(pod)
    return dict(found)


def update_bounds(daemon_set: RawObject, desired: int) -> UpdateBounds:
    rolling: Json = daemon_set.get("spec", "updateStrategy", "rollingUpdate", default={})
    surge = resolve(rolling.get("maxSurge"), desired, round_up=True)
    unavailable = resolve(rolling.get("maxUnavailable", 1), desired, round_up=True)
    return UpdateBounds(unavailable if unavailable or surge else 1, surge)


def is_rolling(daemon_set: RawObject) -> bool:
    return bool(daemon_set.get("spec", "updateStrategy", "type") != "OnDelete")


# --- one pod on each node ---


def plan_pods(
    daemon_set: RawObject,
    places: Mapping[str, DaemonPlacement],
    pods_by_node: PodsByNode,
    revision_hash: str,
    now: datetime,
) -> DaemonSetPlan:
    """Creations and deletions that do not depend on the revision."""
    create: list[str] = []
    delete: list[Pod] = []
    finished: list[Pod] = []
    has_surge = update_bounds(daemon_set, 1).surge > 0 and is_rolling(daemon_set)
    for node in {**places, **pods_by_node}:
        place, pods = places.get(node, NOT_PLACED), pods_by_node.get(node, ())
        living = [pod for pod in pods if not is_deleting(pod)]
        if not place.may_stay:
            # On a missing node only pods that were never bound are deleted here.
            delete += [pod for pod in living if node in places or not pod.node_name]
            continue
        finished += [pod for pod in living if pod.is_finished]
        running = [pod for pod in living if not pod.is_finished]
        if place.should_run and not pods:
            create.append(node)
        elif place.should_run and has_surge and not running and len(living) < len(pods):
            create.append(node)  # a pod that is being deleted is replaced immediately
        delete += _surplus(daemon_set, running, revision_hash, now, has_surge=has_surge)
    return DaemonSetPlan(tuple(create), tuple(delete), tuple(finished))


def _surplus(
    daemon_set: RawObject,
    running: Sequence[Pod],
    revision_hash: str,
    now: datetime,
    *,
    has_surge: bool,
) -> list[Pod]:
    """All but the oldest. With surge, all but the oldest of each revision, until the new one is available."""
    if len(running) <= 1:
        return []
    if not has_surge:
        return list(running[1:])
    new = [pod for pod in running if labels_of(pod).get(REVISION_HASH) == revision_hash]
    old = [pod for pod in running if pod not in new]
    min_ready = min_ready_seconds_of(daemon_set)
    replaced = any(is_available(pod, min_ready, now) for pod in new)
    return [*new[1:], *(old if replaced else old[1:])]


# --- updates ---


def plan_update(
    daemon_set: RawObject,
    places: Mapping[str, DaemonPlacement],
    pods_by_node: PodsByNode,
    revision_hash: str,
    now: datetime,
) -> DaemonSetPlan:
    """The next pods to replace by pods of the current revision."""
    desired = sum(place.should_run for place in places.values())
    bounds = update_bounds(daemon_set, desired)
    min_ready = min_ready_seconds_of(daemon_set)
    missing = surging = 0
    broken: list[Pod] = []
    outdated: list[Pod] = []
    for node, place in places.items():
        pods = pods_by_node.get(node, ())
        if not place.should_run:
            continue
        new = [pod for pod in pods if labels_of(pod).get(REVISION_HASH) == revision_hash]
        old = [pod for pod in pods if pod not in new and not is_deleting(pod)]
        available = any(is_available(pod, min_ready, now) and not is_deleting(pod) for pod in pods)
        surging += bool(new and old)
        missing += not available
        if old and not new and len(pods) == len(old):
            (outdated if available else broken).append(old[0])
    if bounds.surge:
        room = max(bounds.surge - surging, 0)
        chosen = [*broken, *outdated[:room]]
        return DaemonSetPlan(tuple(node_of(pod) for pod in chosen), (), ())
    room = max(bounds.unavailable - missing, 0)
    return DaemonSetPlan((), (*broken, *outdated[:room]), ())


# --- the status ---


def daemon_set_status(
    daemon_set: RawObject,
    places: Mapping[str, DaemonPlacement],
    pods_by_node: PodsByNode,
    revision_hash: str,
    now: datetime,
) -> Json:
    min_ready = min_ready_seconds_of(daemon_set)
    desired = current = misscheduled = ready = available = updated = 0
    for node, place in places.items():
        pods = pods_by_node.get(node, ())
        if not place.should_run:
            misscheduled += bool(pods)
            continue
        desired += 1
        current += bool(pods)
        alive = [pod for pod in pods if not is_deleting(pod)]
        ready += any(map(is_ready, alive))
        available += any(is_available(pod, min_ready, now) for pod in alive)
        updated += any(labels_of(pod).get(REVISION_HASH) == revision_hash for pod in alive)
    return {
        "currentNumberScheduled": current,
        "numberMisscheduled": misscheduled,
        "desiredNumberScheduled": desired,
        "numberReady": ready,
        "observedGeneration": generation_of(daemon_set),
        "updatedNumberScheduled": updated or None,
        "numberAvailable": available or None,
        "numberUnavailable": (desired - available) or None,
    }
