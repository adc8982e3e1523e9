"""Distributes changes to the watchers of this process.

All watchers share one window of the latest changes. Watchers of the same prefix share a topic, which has the part of
the window under that prefix; a watcher is a position in its topic. A watcher that starts before the window reads the
store's history first, page by page. A watcher that falls behind the window is cut off.

    window   41 42 43 44 45 46        all that is newer than its floor (here 40)
    topic a/    42 43       46        a watcher of a/ that has received 43 is positioned before 46
"""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from allot.storage.interface import Change, SlowWatcherError, StorageError
from allot.storage.revision_times import RevisionTimes, TimeMark
from allot.storage.transactions import Batch

logger = logging.getLogger(__name__)

DEFAULT_WINDOW_REVISIONS: Final = 10_000
DEFAULT_WINDOW_BYTES: Final = 64 << 20
SHRINK_BY: Final = 64
"""The part of the window that is dropped at a time: topics are not searched for every change."""
MAX_PLACES: Final = 4096
"""Places, such as the objects of a kind in a namespace, whose topics are remembered."""


class HistoryPage(NamedTuple):
    """Past changes under a prefix, in order."""

    batches: Sequence[Batch]
    upto: int
    """The page has all changes up to this revision."""


ReadHistory: TypeAlias = Callable[[str, int, int], Awaitable[HistoryPage]]
"""Reads changes under a prefix, after one revision and up to another; may raise `CompactedError`."""


Listener: TypeAlias = Callable[[Sequence[Batch] | None], None]
"""Takes published changes; None when its watcher is cut off."""


class Topic:
    """The changes in the window that are under one prefix."""

    def __init__(self, prefix: str, since: int) -> None:
        self.prefix = prefix
        self.since = since
        """The topic has only changes that are newer than this, even if the window has older ones."""
        self.batches: list[Batch] = []
        self.first = 0
        """The number of the first of `batches`. Numbers keep counting when old batches are dropped."""
        self.watchers = 0
        self.waiting: set[asyncio.Future[None]] = set()
        """Of the watchers that wait for the next change."""
        self.listeners: list[Listener] = []
        """Of the watchers that are given the changes ..."""
        self.idle: set[asyncio.Future[None]] = set()
        """... and wait for errors and the end."""
        self.error: StorageError | None = None

    def number_after(self, revision: int) -> int:
        """The number of the first batch that is newer than `revision`."""
        return self.first + bisect_right(self.batches, revision, key=_revision_of)

    def extend_back(self, older: list[Batch], since: int) -> None:
        """Prepend the batches after `since`. No batch can have been dropped yet."""
        self.batches[:0] = older
        self.first -= len(older)
        self.since = since

    def drop(self, floor: int) -> None:
        """Drop what is not newer than `floor`."""
        dropped = bisect_right(self.batches, floor, key=_revision_of)
        del self.batches[:dropped]
        self.first += dropped

    def publish(self, batches: Sequence[Batch]) -> None:
        """Add changes, and tell the watchers."""
        self.batches += batches
        if self.waiting:
            _resolve(self.waiting)
        if self.listeners:
            self._notify(batches)

    def cut_off(self, error: StorageError) -> None:
        """There are no more changes for the watchers."""
        self.error = error
        self.wake_all()
        self._notify(None)

    def _notify(self, batches: Sequence[Batch] | None) -> None:
        """Errors of a listener are logged: the writer and other listeners go on."""
        for listener in tuple(self.listeners):
            try:
                listener(batches)
            except Exception:
                logger.exception("a listener to %s failed", self.prefix)

    def wake_all(self) -> None:
        """There was an error, or there are no more changes."""
        _resolve(self.waiting)
        _resolve(self.idle)


def _resolve(waiters: set[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
    waiters.clear()


class Broadcast:
    """The window of the latest changes, and its watchers. For use in one event loop."""

    def __init__(
        self,
        revision: int,
        read_history: ReadHistory,
        *,
        max_revisions: int = DEFAULT_WINDOW_REVISIONS,
        max_bytes: int = DEFAULT_WINDOW_BYTES,
        clock: Callable[[], float] = time.time,
        marks: Iterable[TimeMark] = (),
    ) -> None:
        """`clock` and `marks` are for `revision_at`."""
        self.revision = revision
        """The last published revision."""
        self.floor = revision
        """The window has every change that is newer than this."""
        self.oldest = 0
        """The oldest revision from which a watch can start."""
        self.withdrawals = 0
        """How often published changes were withdrawn."""
        self.closed = False
        self._clock = clock
        self._times = RevisionTimes(revision, clock(), marks)
        self.read_history = read_history
        self.max_revisions, self._max_bytes = max_revisions, max_bytes
        self._window: deque[Batch] = deque()
        self._costs: deque[int] = deque()
        self._window_bytes = 0
        self._topics: dict[str, Topic] = {}
        self._by_place: dict[str, list[Topic]] = {}
        """Topics whose prefix ends with a slash, by what the keys have up to their last one."""
        self._lengths: list[int] = []
        """Of all other prefixes."""

    def publish(self, batches: Sequence[Batch]) -> None:
        """Publish the next revisions to the watchers, atomically: listeners have them when this returns."""
        self._times.note(self.revision, self._clock(), self.oldest)
        for batch in batches:
            self._append(batch)
            self.revision = batch[0].revision
        if len(batches) == 1 and len(batches[0]) == 1:  # mostly
            for topic in self._topics_of(batches[0][0].key):
                topic.publish(batches)
        else:
            self._publish_parts(batches)
        if len(self._window) > self.max_revisions or self._window_bytes > self._max_bytes:
            self._shrink()

    def _publish_parts(self, batches: Sequence[Batch]) -> None:
        changed: defaultdict[Topic, list[Batch]] = defaultdict(list)
        for batch in batches:
            for topic, part in self._parts(batch):
                changed[topic].append(part)
        for topic, parts in changed.items():
            topic.publish(parts)

    def _append(self, batch: Batch) -> None:
        cost = cost_of(batch, self.floor)
        self._window.append(batch)
        self._costs.append(cost)
        self._window_bytes += cost

    def advance(self, revision: int) -> None:
        """Nothing changed up to `revision`, except what was published."""
        self.revision = max(self.revision, revision)

    def preload(self, batches: Iterable[Batch], floor: int) -> None:
        """Fill the window with past changes, those after `floor`, before there are any watchers."""
        self.floor = floor
        for batch in batches:
            self._append(batch)
        if len(self._window) > self.max_revisions or self._window_bytes > self._max_bytes:
            self._shrink()

    def since(self, revision: int) -> Iterator[Change]:
        """All changes that are newer than `revision`, newest first, as far as the window goes."""
        for batch in reversed(self._window):
            if batch[0].revision <= revision:
                return
            yield from reversed(batch)

    def restart(self, revision: int, error: StorageError) -> None:
        """Restart at `revision` after missed changes: all watchers are cut off."""
        topics = list(self._topics.values())
        self._topics.clear()
        self._note_topics()
        self._window.clear()
        self._costs.clear()
        self._window_bytes = 0
        self.revision = self.floor = revision
        self._times.restart(revision, self._clock())
        for topic in topics:
            topic.cut_off(error)

    def withdraw(self, revision: int) -> None:
        """Take back all changes after `revision`: all watchers are cut off, also those that have not begun."""
        self.withdrawals += 1
        self.restart(revision, SlowWatcherError("changes that were shown could not be stored"))

    def close(self) -> None:
        """Stop publishing: watches end after the published changes."""
        self.closed = True
        for topic in self._topics.values():
            topic.wake_all()

    def revision_at(self, time: float) -> int:
        """The last revision at a time; raises `UnknownTimeError`."""
        return self._times.revision_at(time, self.revision, self.oldest)

    def covers(self, after: int) -> bool:
        return after >= self.floor and after >= self.oldest

    def join(self, prefix: str, after: int) -> Topic:
        """The topic of `prefix`, with every change that is newer than `after`. Leave it when done."""
        topic = self._topics.get(prefix)
        if topic is None:
            topic = self._topics[prefix] = Topic(prefix, self.revision)
            self._note_topics()
        if after < topic.since:
            self._extend_back(topic, after)
        topic.watchers += 1
        return topic

    def leave(self, topic: Topic) -> None:
        topic.watchers -= 1
        if not topic.watchers and self._topics.get(topic.prefix) is topic:
            del self._topics[topic.prefix]
            self._note_topics()

    def _note_topics(self) -> None:
        self._by_place.clear()
        self._lengths = sorted({len(each) for each in self._topics if not each.endswith("/")})

    def _extend_back(self, topic: Topic, after: int) -> None:
        older = []
        for batch in reversed(self._window):
            revision = batch[0].revision
            if revision <= after:
                break
            if revision <= topic.since:
                part = tuple(change for change in batch if change.key.startswith(topic.prefix))
                if part:
                    older.append(batch if len(part) == len(batch) else part)
        older.reverse()
        topic.extend_back(older, after)

    def _parts(self, batch: Batch) -> list[tuple[Topic, Batch]]:
        """The topics of a batch, each with its part of the batch."""
        changes_by_topic: dict[Topic, list[Change]] = {}
        for change in batch:
            for topic in self._topics_of(change.key):
                changes_by_topic.setdefault(topic, []).append(change)
        return [
            (topic, batch if len(changes) == len(batch) else tuple(changes))
            for topic, changes in changes_by_topic.items()
        ]

    def _topics_of(self, key: str) -> list[Topic]:
        """Looked up by place, and by the few distinct lengths of prefixes that do not end with a slash."""
        place = key[: key.rfind("/") + 1]
        found = self._by_place.get(place)
        if found is None:
            found = self._remember(place)
        if self._lengths:
            found = [*found, *self._in_between(key)]
        return found

    def _in_between(self, key: str) -> Iterator[Topic]:
        """The topics of a key whose prefix does not end with a slash."""
        for length in self._lengths:
            if length > len(key):
                return
            prefix = key[:length]
            if not prefix.endswith("/") and prefix in self._topics:
                yield self._topics[prefix]

    def _remember(self, place: str) -> list[Topic]:
        """The topics that every key in a place has."""
        if len(self._by_place) >= MAX_PLACES:
            self._by_place.clear()
        parts = place.split("/")
        prefixes = ("/".join(parts[:count]) + "/" for count in range(1, len(parts)))
        found = [self._topics[prefix] for prefix in prefixes if prefix in self._topics]
        self._by_place[place] = found
        return found

    def _shrink(self) -> None:
        """Drop the oldest part of a window that is full."""
        window = self._window
        revisions = self.max_revisions - self.max_revisions // SHRINK_BY
        max_bytes = self._max_bytes - self._max_bytes // SHRINK_BY
        while len(window) > revisions or self._window_bytes > max_bytes:
            batch = window.popleft()
            self._window_bytes -= self._costs.popleft()
            self.floor = batch[0].revision
        for topic in self._topics.values():
            topic.drop(self.floor)


def _revision_of(batch: Batch) -> int:
    return batch[0].revision


def cost_of(batch: Batch, floor: int) -> int:
    """The memory cost of a batch in bytes, if everything newer than `floor` is in memory."""
    cost = 0
    for change in batch:
        entry, previous = change.entry, change.previous
        if entry is not None:
            cost += len(entry.value)
        if previous is not None and previous.revision <= floor:
            cost += len(previous.value)  # only this change references it
    return cost
