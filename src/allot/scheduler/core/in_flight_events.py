"""What happened in the cluster while pods were being tried, so that no event is lost on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from allot.scheduler.framework.events import ClusterEvent


@dataclass(slots=True)
class ObservedEvent:
    """An event, with the object before and after."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlightEvents:
    """Happenings in order. Numbers go on counting when old ones are forgotten."""

    def __init__(self) -> None:
        self._kept: list[ObservedEvent] = []
        self._first = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def end(self) -> int:
        """The number that the next one will have."""
        return self._first + len(self._kept)

    def add(self, observed: ObservedEvent) -> None:
        self._kept.append(observed)

    def since(self, number: int) -> list[ObservedEvent]:
        return self._kept[number - self._first :]

    def forget_before(self, number: int) -> None:
        """Nobody will ask for older ones. They go when there are enough of them to be worth it."""
        old = number - self._first
        if old == len(self._kept) or (old > 100 and old * 2 > len(self._kept)):
            del self._kept[:old]
            self._first = number
