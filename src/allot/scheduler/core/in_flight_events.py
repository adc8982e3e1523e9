"""In-flight events: cluster events that arrive during scheduling attempts, replayed when a pod is requeued."""

from __future__ import annotations

from typing import Any

import msgspec

from allot.scheduler.framework.events import ClusterEvent


class ObservedEvent(msgspec.Struct):
    """A cluster event with the object before and after."""

    event: ClusterEvent
    old: Any
    new: Any


class _InFlightPod(msgspec.Struct):
    """A pod in a scheduling attempt."""

    since: int
    """The sequence number of the first event after the attempt began."""
    own: list[ObservedEvent] = []
    """Changes of the pod itself."""


class InFlightEvents:
    """Events since the oldest attempt began. Sequence numbers go on counting when old events are dropped."""

    def __init__(self) -> None:
        self.pods: dict[str, _InFlightPod] = {}
        """By uid; the first one has been in flight longest."""
        self._kept: list[ObservedEvent] = []
        self._first = 0

    def __len__(self) -> int:
        """The number of events."""
        return len(self._kept)

    def begin(self, uid: str) -> None:
        """An attempt to schedule the pod begins."""
        self.pods[uid] = _InFlightPod(self._first + len(self._kept))

    def add(self, observed: ObservedEvent) -> None:
        self._kept.append(observed)

    def add_own(self, uid: str, observed: ObservedEvent) -> None:
        """Add a change of the pod itself."""
        pod = self.pods.get(uid)
        if pod is not None:
            pod.own.append(observed)

    def since_begin(self, uid: str) -> list[ObservedEvent]:
        """The events since the pod's attempt began; none if it is not in flight."""
        pod = self.pods.get(uid)
        return [*self._kept[pod.since - self._first :], *pod.own] if pod is not None else []

    def end(self, uid: str) -> None:
        """Take the pod out of flight, and drop events that no pod needs any more: in bulk, once there are enough."""
        if self.pods.pop(uid, None) is None or not self._kept:
            return
        oldest = next(iter(self.pods.values()), None)
        old = len(self._kept) if oldest is None else oldest.since - self._first
        if old == len(self._kept) or (old > 100 and old * 2 > len(self._kept)):
            del self._kept[:old]
            self._first += old
