"""Which connections are open, what they do, and when they must end.

A connection begins with a TLS handshake and a request's head, for which it has a few seconds. While a request is
answered it is busy, and the exchange keeps time. Between requests it is idle. When there are too many, the
connection that has waited longest for a head or for a request makes room, first from the address that has most.

    admit ─► head ─► busy ─► idle ─► head ─► ...
              │       └► closing ─► gone
              └─────► ends when its time is over, or to make room
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from allot.apiserver.http.metrics import Metrics
from allot.apiserver.log_aggregation import Notice

log = logging.getLogger(__name__)

HEAD: Final = "head"
IDLE: Final = "idle"
BUSY: Final = "busy"
CLOSING: Final = "closing"
STATES: Final = (HEAD, IDLE, BUSY, CLOSING)


class ConnectionLimits(NamedTuple):
    """How many connections, and how long they may take."""

    max_connections: int = 4096
    head_seconds: float = 10.0
    """From the connection, or the first byte of a request, to the end of its head; TLS included."""
    idle_seconds: float = 120.0
    """Between two requests."""
    closing_seconds: float = 5.0
    """For a client to receive the rest of an answer and close the connection."""

    @property
    def max_per_address(self) -> int:
        return max(1, self.max_connections * 3 // 4)


class Slot:
    """The place of one connection among all. `abort` ends it, whatever it does."""

    __slots__ = ("abort", "address", "deadline", "state")

    def __init__(self, address: str, abort: Callable[[], None]) -> None:
        self.address = address
        self.abort = abort
        self.state = HEAD
        self.deadline = float("inf")


class Connections:
    """All connections of one server."""

    def __init__(
        self,
        limits: ConnectionLimits,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self.draining = 0
        """How many take what their client still sends, only to let it see the answer."""
        self._clock = clock
        self._slots: set[Slot] = set()
        self._by_address: Counter[str] = Counter()
        self._evictable: dict[str, dict[Slot, None]] = {}
        """By address, those that wait for a head or a request, the longest waiting first."""
        self._ended = metrics.connections_ended
        self._notice = Notice(log, clock=clock)
        for state in STATES:
            gauge = metrics.connections.labels(state)
            gauge.set_function(partial(self._count, state))

    def __len__(self) -> int:
        return len(self._slots)

    def admit(self, address: str, abort: Callable[[], None]) -> Slot | None:
        """A place for a new connection; None if there is no room, and none can be made."""
        if self._by_address[address] >= self.limits.max_per_address:
            fits = self._evict_from(address)
        else:
            fits = len(self._slots) < self.limits.max_connections or self.evict()
        if not fits:
            self._ended.labels("refused").inc()
            self._notice.warn(
                f"refusing connections: {len(self._slots)} are open and busy"
                f" ({self._by_address[address]} from {address}), at most"
                f" {self.limits.max_connections} ({self.limits.max_per_address} per address)"
            )
            return None
        slot = Slot(address, abort)
        slot.deadline = self._clock() + self.limits.head_seconds
        self._slots.add(slot)
        self._by_address[address] += 1
        self._evictable.setdefault(address, {})[slot] = None
        return slot

    def reading_head(self, slot: Slot) -> None:
        """A request has begun to come in. Further bytes of it do not earn it more time."""
        if slot.state == HEAD or slot not in self._slots:
            return
        slot.state = HEAD
        slot.deadline = self._clock() + self.limits.head_seconds
        self._evictable.setdefault(slot.address, {}).setdefault(slot)

    def busy(self, slot: Slot) -> None:
        """A request is being answered."""
        slot.state = BUSY
        slot.deadline = float("inf")
        self._unevictable(slot)

    def idle(self, slot: Slot) -> None:
        """All requests are answered."""
        if slot.state == IDLE or slot not in self._slots:
            return
        if slot.state != BUSY:
            self._unevictable(slot)
        slot.state = IDLE
        slot.deadline = self._clock() + self.limits.idle_seconds
        self._evictable.setdefault(slot.address, {})[slot] = None

    def closing(self, slot: Slot, seconds: float | None = None) -> None:
        """It is to end by itself, within `seconds` or the usual time."""
        if slot.state == CLOSING and seconds is None:
            return
        slot.state = CLOSING
        wait = self.limits.closing_seconds if seconds is None else seconds
        slot.deadline = self._clock() + wait
        self._unevictable(slot)

    def gone(self, slot: Slot) -> None:
        """It has ended. It may be said again."""
        if slot not in self._slots:
            return
        self._slots.discard(slot)
        self._by_address[slot.address] -= 1
        if not self._by_address[slot.address]:
            del self._by_address[slot.address]
        self._unevictable(slot)

    def evict(self) -> bool:
        """End the connection that has waited longest, of the address that has most; whether there was one."""
        if not self._evictable:
            return False
        address = max(self._evictable, key=lambda address: self._by_address[address])
        return self._evict_from(address)

    def sweep(self) -> None:
        """End those whose time is over."""
        now = self._clock()
        for slot in [slot for slot in self._slots if slot.deadline <= now]:
            self.end(slot, f"{slot.state}-timeout")

    def end_all(self, reason: str) -> None:
        for slot in tuple(self._slots):
            self.end(slot, reason)

    def end(self, slot: Slot, reason: str) -> None:
        """End it now, and count why."""
        if slot in self._slots:
            self._ended.labels(reason).inc()
            self.gone(slot)
        slot.abort()

    def _evict_from(self, address: str) -> bool:
        waiting = self._evictable.get(address)
        if not waiting:
            return False
        self.end(next(iter(waiting)), "evicted")
        self._notice.warn(
            f"closing idle connections to make room: {len(self._slots)} are open, at most"
            f" {self.limits.max_connections} ({self.limits.max_per_address} per address)"
        )
        return True

    def _unevictable(self, slot: Slot) -> None:
        waiting = self._evictable.get(slot.address)
        if waiting is not None:
            waiting.pop(slot, None)
            if not waiting:
                del self._evictable[slot.address]

    def _count(self, state: str) -> float:
        return sum(1 for slot in self._slots if slot.state == state)
