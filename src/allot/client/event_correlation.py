"""Which events are one: repetitions, similar ones, and too many about one object.

Equal events become one with a count (series), events that differ only in their notes are aggregated, and a spam filter
limits the events of one reason about one object.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from typing import Any, Final, NamedTuple

from allot.client.clock import micro_time
from allot.client.events import Event, shortened
from allot.client.rate_limits import TokenBucket
from allot.lru_cache import LRUCache

_COMBINED: Final = "(combined from similar events): "


class CorrelationLimits(NamedTuple):
    """Limits of series, aggregation and spam filter."""

    series_seconds: float = 360.0
    """A repetition after a longer pause is a new event."""
    remembered: int = 4096
    """Cached series, and cached rate limits of objects."""
    burst: int = 25
    """The burst of events of one reason about one object."""
    refill_seconds: float = 300.0
    """The interval in which one more event is allowed."""
    similar: int = 25
    """Events that differ only in their notes; more of them are aggregated to one."""
    similar_seconds: float = 600.0
    """Aggregation ends after a pause this long."""


class _Similar:
    """The notes of events that are equal otherwise."""

    def __init__(self) -> None:
        self.notes: set[str] = set()
        self.last_at = 0.0


class EventSeries:
    """An event, its count, and the count that was written."""

    def __init__(self, event: Event, today: datetime, now: float) -> None:
        self.event = event
        self.began = today
        self.name = ""
        self.count = 0
        self.written = 0
        self.is_queued = False
        self.queued_at = now
        self.not_before = now
        self.pause = 0.0
        self.seen(today, now)

    def seen(self, today: datetime, now: float) -> None:
        self.count += 1
        self.last = today
        self.last_at = now

    def counted(self) -> dict[str, Any]:
        return {"count": self.count, "lastObservedTime": micro_time(self.last)}


class EventCorrelator:
    """The series of recent events."""

    def __init__(self, limits: CorrelationLimits) -> None:
        self._limits = limits
        self._series: LRUCache[Hashable, EventSeries] = LRUCache(limits.remembered)
        self._allowances: LRUCache[Hashable, TokenBucket] = LRUCache(limits.remembered)
        self._similar: LRUCache[Hashable, _Similar] = LRUCache(limits.remembered)

    def series_of(self, event: Event, today: datetime, now: float) -> EventSeries | None:
        """The series that the event is counted in; None if the spam filter suppresses it."""
        regarding, type_, reason, action, note, source, related, annotations, is_routine = event
        about = regarding.identity
        related_to = related.identity if related is not None else None
        alike = about, type_, reason, action, source, related_to, annotations, is_routine
        if self._is_one_of_many(alike, note, now):
            event = event._replace(note=shortened(f"{_COMBINED}{note}"))
            note = _COMBINED
        # By reason, so that repeated failures do not suppress the final success.
        if not self._allows((about, reason), now):
            return None
        key = alike, note
        series = self._series.get(key)
        if series is not None and now - series.last_at <= self._limits.series_seconds:
            series.seen(today, now)
        else:
            series = EventSeries(event, today, now)
            self._series.put(key, series)
        return series

    def _is_one_of_many(self, alike: Hashable, note: str, now: float) -> bool:
        """Whether the event is aggregated with similar ones, which differ in their notes."""
        similar = self._similar.get(alike)
        if similar is None or now - similar.last_at > self._limits.similar_seconds:
            similar = _Similar()
            self._similar.put(alike, similar)
        similar.last_at = now
        if note in similar.notes:
            return False
        if len(similar.notes) >= self._limits.similar:
            return True
        similar.notes.add(note)
        return False

    def _allows(self, about: Hashable, now: float) -> bool:
        bucket = self._allowances.get(about)
        if bucket is None:
            bucket = TokenBucket(1 / self._limits.refill_seconds, self._limits.burst, now)
            self._allowances.put(about, bucket)
        return bucket.take(now)
