"""Gated and unschedulable pods, indexed by gating plugin and by the objects that they reference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from enum import StrEnum

import msgspec

from allot.scheduler.framework.status import SUCCESS, Status
from allot.scheduler.state.pods import PodInfo

ReferencedObjects = Callable[[PodInfo], Iterable[Hashable]]
"""The objects that a pod references."""


class SubQueue(StrEnum):
    """The sub-queues; named as in the metric `scheduler_pending_pods`."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"


class QueuedPodInfo(msgspec.Struct, eq=False):
    """A pod in the queue, and its attempts so far."""

    pod: PodInfo
    added_at: float
    """When it was first added."""
    queued_at: float
    """When it last entered the active queue, or failed."""
    sub_queue: SubQueue = SubQueue.ACTIVE
    attempts: int = 0
    rejections: int = 0
    errors: int = 0
    """Consecutive attempts that ended in an error."""
    rejected_by: frozenset[str] = frozenset()
    pending_on: frozenset[str] = frozenset()
    """Plugins that reported Pending; their events let the pod skip its backoff."""
    gate: Status = SUCCESS
    last_failed: bool = False
    """Whether the last attempt ended in an error."""
    background_attempts: int = 0
    """Background decisions in the current attempt."""
    needs_preparation: bool = False
    """Whether devices are to be prepared before the next background decision."""
    timeouts: int = 0
    """Consecutive attempts that timed out."""
    ticket: int = 0
    """The valid one of its heap entries."""


Pods = dict[str, QueuedPodInfo]


class UnschedulablePods:
    """Pods by uid, by the plugin that gates them, and by the objects that they reference."""

    def __init__(self, referenced_objects: ReferencedObjects) -> None:
        self._referenced_objects = referenced_objects
        self._unschedulable: Pods = {}
        self._gated: dict[str, Pods] = {}
        self._by_name: dict[Hashable, Pods] = {}
        self._entered: dict[str, tuple[Pods, tuple[Hashable, ...]]] = {}
        """By uid: the index that has the pod, and the keys of its objects."""

    def __bool__(self) -> bool:
        return bool(self._entered)

    @property
    def has_unschedulable(self) -> bool:
        return bool(self._unschedulable)

    def add(self, queued: QueuedPodInfo) -> None:
        """Add a gated or unschedulable pod."""
        uid = queued.pod.uid
        gated = queued.sub_queue is SubQueue.GATED
        pods = self._gated.setdefault(queued.gate.plugin, {}) if gated else self._unschedulable
        names = tuple(self._referenced_objects(queued.pod))
        pods[uid] = queued
        for name in names:
            self._by_name.setdefault(name, {})[uid] = queued
        self._entered[uid] = pods, names

    def remove(self, queued: QueuedPodInfo) -> bool:
        """False if the pod is not gated or unschedulable."""
        uid = queued.pod.uid
        entered = self._entered.pop(uid, None)
        if entered is None:
            return False
        pods, names = entered
        del pods[uid]
        for name in names:
            group = self._by_name.get(name)
            if group is not None and group.pop(uid, None) is not None and not group:
                del self._by_name[name]
        return True

    def gated(
        self, plugins: Collection[str], open_by_name: Collection[str], about: Hashable
    ) -> list[QueuedPodInfo]:
        """Pods that these plugins gate and that an event about this object may admit."""
        found: list[QueuedPodInfo] = []
        for plugin, gated in self._gated.items():
            if not gated or plugin not in plugins:
                continue
            if plugin not in open_by_name:
                found += gated.values()
            elif about is not None and (named := self._by_name.get(about)):
                found += [
                    queued
                    for queued in named.values()
                    if queued.sub_queue is SubQueue.GATED and queued.gate.plugin == plugin
                ]
        return found

    def unschedulable(self, about: Hashable = None) -> list[QueuedPodInfo]:
        """All unschedulable pods, or only those that reference an object."""
        if about is None:
            return list(self._unschedulable.values())
        named = self._by_name.get(about, {}).values()
        return [queued for queued in named if queued.sub_queue is SubQueue.UNSCHEDULABLE]
