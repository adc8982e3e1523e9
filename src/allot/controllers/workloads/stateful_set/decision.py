"""Which pods of a stateful set to create and delete next.

In order, one at a time:

    0 ──► 1 ──► 2          each is created when all before it are available
    5 ──► 4 ──► 3          surplus pods are deleted from the end, when all others are available
    2 ──► 1 ──► 0          pods of an old revision are deleted from the end, when all after them are available

With `podManagementPolicy: Parallel` the first two do not wait; updates do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.controllers.workloads.accessors import (
    Json,
    generation_of,
    is_deleting,
    labels_of,
    min_ready_seconds_of,
    replicas_of,
)
from allot.controllers.workloads.int_or_percent import resolve
from allot.controllers.workloads.pod_control import BURST_REPLICAS
from allot.controllers.workloads.pod_states import is_available, is_ready
from allot.controllers.workloads.revisions import REVISION_HASH
from allot.controllers.workloads.stateful_set.identity import ordinal_of, ordinals_of


class Revisions(NamedTuple):
    """Names of the current revision and of the update revision."""

    current: str
    update: str


class StatefulSetPlan(NamedTuple):
    """Pods to create, by ordinal, with the name of their revision; pods to delete."""

    create: tuple[tuple[int, str], ...] = ()
    delete: tuple[Pod, ...] = ()
    failed: tuple[Pod, ...] = ()
    """Failed pods, deleted to be recreated."""

    @property
    def is_empty(self) -> bool:
        return not (self.create or self.delete or self.failed)


WAIT = StatefulSetPlan()


def is_parallel(stateful_set: RawObject) -> bool:
    return bool(stateful_set.get("spec", "podManagementPolicy") == "Parallel")


def is_rolling(stateful_set: RawObject) -> bool:
    kind = stateful_set.get("spec", "updateStrategy", "type", default="RollingUpdate")
    return bool(kind == "RollingUpdate")


def partition_of(stateful_set: RawObject) -> int:
    """Pods with smaller ordinals are not updated."""
    partition = stateful_set.get("spec", "updateStrategy", "rollingUpdate", "partition", default=0)
    return ordinals_of(stateful_set).start + int(partition)


def revision_for(stateful_set: RawObject, ordinal: int, revisions: Revisions) -> str:
    """The revision of a new pod."""
    keeps = is_rolling(stateful_set) and ordinal < partition_of(stateful_set)
    return revisions.current if keeps else revisions.update


def revision_of(pod: Pod) -> str:
    return labels_of(pod).get(REVISION_HASH, "")


def by_ordinal(stateful_set: RawObject, pods: Sequence[Pod]) -> dict[int, Pod]:
    numbered = ((ordinal_of(stateful_set, pod), pod) for pod in pods)
    return {ordinal: pod for ordinal, pod in numbered if ordinal is not None}


def plan_pods(
    stateful_set: RawObject, pods: Mapping[int, Pod], revisions: Revisions, now: datetime
) -> StatefulSetPlan:
    """The next step towards all pods, no surplus, all of the update revision."""
    if is_parallel(stateful_set):
        step = _all_at_once(stateful_set, pods, revisions)
    else:
        step, may_go_on = _in_order(stateful_set, pods, revisions, now)
        if not may_go_on:
            return step
    if step.is_empty and is_rolling(stateful_set):
        return _next_update(stateful_set, pods, revisions, now)
    return step


def _in_order(
    stateful_set: RawObject, pods: Mapping[int, Pod], revisions: Revisions, now: datetime
) -> tuple[StatefulSetPlan, bool]:
    """One step, and whether an update may follow."""
    min_ready = min_ready_seconds_of(stateful_set)
    wanted = ordinals_of(stateful_set)
    waits = False
    for ordinal in wanted:
        pod = pods.get(ordinal)
        if pod is None:
            return StatefulSetPlan(
                create=((ordinal, revision_for(stateful_set, ordinal, revisions)),)
            ), False
        if pod.is_finished and not is_deleting(pod):
            return StatefulSetPlan(failed=(pod,)), False
        if is_deleting(pod) or not is_available(pod, min_ready, now):
            # A pod of an old revision that never becomes available must not block the update.
            waits = True
            break
    if waits:
        broken = _broken_by_update(stateful_set, pods, revisions, now)
        return (StatefulSetPlan(delete=broken), False) if broken else (WAIT, False)
    surplus = [pods[ordinal] for ordinal in sorted(pods, reverse=True) if ordinal not in wanted]
    if surplus:
        first = surplus[0]
        return (WAIT if is_deleting(first) else StatefulSetPlan(delete=(first,))), False
    return WAIT, True


def _broken_by_update(
    stateful_set: RawObject, pods: Mapping[int, Pod], revisions: Revisions, now: datetime
) -> tuple[Pod, ...]:
    """The unavailable pods, if all of them are of an old revision."""
    if not is_rolling(stateful_set) or any(is_deleting(pod) for pod in pods.values()):
        return ()
    if any(ordinal not in pods for ordinal in ordinals_of(stateful_set)):
        return ()
    return _next_update(stateful_set, pods, revisions, now).delete


def _all_at_once(
    stateful_set: RawObject, pods: Mapping[int, Pod], revisions: Revisions
) -> StatefulSetPlan:
    wanted = ordinals_of(stateful_set)
    missing = (ordinal for ordinal in wanted if ordinal not in pods)
    surplus = (
        pods[ordinal]
        for ordinal in sorted(pods, reverse=True)
        if ordinal not in wanted and not is_deleting(pods[ordinal])
    )
    ended = (
        pod
        for ordinal, pod in pods.items()
        if ordinal in wanted and pod.is_finished and not is_deleting(pod)
    )
    return StatefulSetPlan(
        create=tuple(
            (ordinal, revision_for(stateful_set, ordinal, revisions))
            for ordinal in islice(missing, BURST_REPLICAS)
        ),
        delete=tuple(islice(surplus, BURST_REPLICAS)),
        failed=tuple(islice(ended, BURST_REPLICAS)),
    )


def _next_update(
    stateful_set: RawObject, pods: Mapping[int, Pod], revisions: Revisions, now: datetime
) -> StatefulSetPlan:
    """Replace old pods from the end, within maxUnavailable."""
    rolling: Json = stateful_set.get("spec", "updateStrategy", "rollingUpdate", default={})
    replicas = replicas_of(stateful_set)
    limit = max(resolve(rolling.get("maxUnavailable", 1), replicas, round_up=True), 1)
    min_ready = min_ready_seconds_of(stateful_set)
    lowest = partition_of(stateful_set)
    missing = 0
    delete: list[Pod] = []
    for ordinal in reversed(ordinals_of(stateful_set)):
        if ordinal < lowest or missing >= limit or len(delete) >= BURST_REPLICAS:
            break
        pod = pods.get(ordinal)
        if pod is None:
            missing += 1
        elif revision_of(pod) != revisions.update and not is_deleting(pod):
            delete.append(pod)
            missing += 1
        elif is_deleting(pod) or not is_available(pod, min_ready, now):
            missing += 1
    return StatefulSetPlan(delete=tuple(delete))


# --- the status ---


def stateful_set_status(
    stateful_set: RawObject, pods: Sequence[Pod], revisions: Revisions, now: datetime
) -> Json:
    """The counts. When all pods are of the update revision, it becomes the current one."""
    min_ready = min_ready_seconds_of(stateful_set)
    alive = [pod for pod in pods if not is_deleting(pod)]
    ready = sum(map(is_ready, pods))
    updated = sum(revision_of(pod) == revisions.update for pod in alive)
    current = sum(revision_of(pod) == revisions.current for pod in alive)
    is_done = is_rolling(stateful_set) and updated == len(pods) == ready
    if is_done:
        current = updated
    return {
        "observedGeneration": generation_of(stateful_set),
        "replicas": len(pods),
        "readyReplicas": ready or None,
        "availableReplicas": sum(is_available(pod, min_ready, now) for pod in pods),
        "currentReplicas": current or None,
        "updatedReplicas": updated or None,
        "currentRevision": revisions.update if is_done else revisions.current,
        "updateRevision": revisions.update,
        "collisionCount": int(stateful_set.get("status", "collisionCount", default=0)),
    }
