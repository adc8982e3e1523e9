"""In-flight events: cluster events that arrive during scheduling attempts, replayed when a pod is requeued."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from allot.scheduler.framework.events import ClusterEvent


@dataclass(slots=True)
class ObservedEvent:
    """A cluster event with the object before and after."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlightEvents:
    """Events in order. Sequence numbers go on counting when old events are dropped."""

    def __init__(self) -> None:
        self._kept: list[ObservedEvent] = []
        self._first = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def end(self) -> int:
        """The sequence number of the next event."""
        return self._first + len(self._kept)

    def add(self, observed: ObservedEvent) -> None:
        self._kept.append(observed)

    def since(self, number: int) -> list[ObservedEvent]:
        return self._kept[number - self._first :]

    def forget_before(self, number: int) -> None:
        """Drop older events; in bulk, once there are enough of them."""
        old = number - self._first
        if old == len(self._kept) or (old > 100 and old * 2 > len(self._kept)):
            del self._kept[:old]
            self._first = number
