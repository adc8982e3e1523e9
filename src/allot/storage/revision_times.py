"""When revisions were written: which one was the last at a time.

A mark says that at its time its revision was the last one. It is made when the next write comes, at most once in a
second. So the first mark after a time has the revision of that time, or one of less than a second later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from allot.storage.interface import UnknownTimeError

SECONDS_BETWEEN_MARKS: Final = 1.0


class TimeMark(NamedTuple):
    """At `time`, `revision` was the last one."""

    revision: int
    time: float


class RevisionTimes:
    """The marks of the history that is kept."""

    def __init__(self, revision: int, now: float, marks: Iterable[TimeMark] = ()) -> None:
        """`marks` are those of earlier processes; `now` the time since when this one knows all writes."""
        self._marks: list[TimeMark] = []
        self._last = now
        """The time of the last one."""
        for mark in sorted(marks):
            self._add(mark)
        self._add(TimeMark(revision, now))

    def note(self, revision: int, now: float, oldest: int) -> None:
        """`revision` was the last one, and another is written now. History before `oldest` is compacted."""
        if 0 <= now - self._last < SECONDS_BETWEEN_MARKS:
            return
        self._add(TimeMark(revision, now))
        self._forget(oldest)

    def restart(self, revision: int, now: float) -> None:
        """Writes were missed: nothing is known of earlier times."""
        self._marks = [TimeMark(revision, now)]
        self._last = now

    def _add(self, mark: TimeMark) -> None:
        """When the clock was set back, the times that come again mean the later ones."""
        while self._marks and self._marks[-1].time > mark.time:
            self._marks.pop()
        self._marks.append(mark)
        self._last = mark.time

    def _forget(self, oldest: int) -> None:
        gone = 0
        while gone + 1 < len(self._marks) and self._marks[gone + 1].revision <= oldest:
            gone += 1
        del self._marks[:gone]

    def revision_at(self, time: float, current: int, oldest: int) -> int:
        """The last revision at a time; `UnknownTimeError` if that is not kept."""
        marks = self._marks
        index = bisect_right(marks, time, key=lambda mark: mark.time)
        revision = marks[index].revision if index < len(marks) else current
        if index == 0 or revision < oldest:
            kept = (mark.time for mark in marks if mark.revision >= oldest)
            raise UnknownTimeError(time, next(kept, marks[-1].time))
        return revision
