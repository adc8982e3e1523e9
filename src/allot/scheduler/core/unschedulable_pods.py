"""Pods that only an event can wake: gated and unschedulable ones, found by what an event is about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from allot.scheduler.framework.status import SUCCESS, Status
from allot.scheduler.state.pods import PodInfo

ReferencedObjects = Callable[[PodInfo], Iterable[Hashable]]
"""The objects whose changes matter to a pod because it names them."""


class SubQueue(StrEnum):
    """Where a pod waits; the names are those of the metric `scheduler_pending_pods`."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"


@dataclass(eq=False, slots=True)
class QueuedPodInfo:
    """A pod in the queue and its past attempts."""

    pod: PodInfo
    added_at: float
    """When the queue first heard of it."""
    queued_at: float
    """When it last came to the active queue, or failed."""
    sub_queue: SubQueue = SubQueue.ACTIVE
    attempts: int = 0
    rejections: int = 0
    errors: int = 0
    """Errors since the last attempt that ended without one."""
    rejected_by: frozenset[str] = frozenset()
    pending_on: frozenset[str] = frozenset()
    """Plugins that only wait for something; their events let the pod skip its backoff."""
    gate: Status = SUCCESS
    last_failed: bool = False
    """Whether the last attempt ended in an error."""
    was_flushed: bool = False
    background_attempts: int = 0
    """Decisions beside the event loop since the last attempt that ended by itself."""
    timeouts: int = 0
    """Attempts in a row that a time limit ended."""
    ticket: int = 0
    """Which of its entries in a heap counts."""


Pods = dict[str, QueuedPodInfo]


class UnschedulablePods:
    """Pods by uid, by the plugin that gates them, and by the objects they name."""

    def __init__(self, referenced_objects: ReferencedObjects) -> None:
        self._referenced_objects = referenced_objects
        self._unschedulable: Pods = {}
        self._gated: dict[str, Pods] = {}
        self._by_name: dict[Hashable, Pods] = {}
        self._entered: dict[str, tuple[Pods, tuple[Hashable, ...]]] = {}
        """By uid: the pods it is among, and the names it is found by."""

    def __len__(self) -> int:
        return len(self._entered)

    def add(self, queued: QueuedPodInfo) -> None:
        """A pod that goes to sleep, gated or unschedulable."""
        uid = queued.pod.uid
        gated = queued.sub_queue is SubQueue.GATED
        pods = self._gated.setdefault(queued.gate.plugin, {}) if gated else self._unschedulable
        names = tuple(self._referenced_objects(queued.pod))
        pods[uid] = queued
        for name in names:
            self._by_name.setdefault(name, {})[uid] = queued
        self._entered[uid] = pods, names

    def remove(self, queued: QueuedPodInfo) -> bool:
        """Whether it was among them."""
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
        self, plugins: Iterable[str], open_by_name: Collection[str], about: Hashable
    ) -> list[QueuedPodInfo]:
        """Pods that these plugins gate and an event about this object may let in."""
        found: list[QueuedPodInfo] = []
        for plugin in plugins:
            if plugin in open_by_name:
                named = self._by_name.get(about, {}).values() if about is not None else ()
                found += [
                    queued
                    for queued in named
                    if queued.sub_queue is SubQueue.GATED and queued.gate.plugin == plugin
                ]
            else:
                found += self._gated.get(plugin, {}).values()
        return found

    def unschedulable(self, about: Hashable = None) -> list[QueuedPodInfo]:
        """All unschedulable pods, or only those that name an object."""
        if about is None:
            return list(self._unschedulable.values())
        named = self._by_name.get(about, {}).values()
        return [queued for queued in named if queued.sub_queue is SubQueue.UNSCHEDULABLE]
