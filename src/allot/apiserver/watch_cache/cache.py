"""What the store holds of one resource, in memory and up to date, and its recent changes.

A `ResourceCache` follows one watch of the store, which gives it every change before the write that makes it returns.
Gets and lists are answered from it; watchers are cursors into its window of recent changes, so that a thousand of them
cost no more memory than one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterable, KeysView, Sequence
from typing import Final

from allot.apiserver.pacing import Pacer
from allot.apiserver.watch_cache.codec import Codec
from allot.apiserver.watch_cache.object_changes import ObjectChange
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.apiserver.watch_cache.window import SHRINK_BY, WINDOW, WINDOW_BYTES, WindowBudget
from allot.storage.interface import (
    Change,
    CompactedError,
    SlowWatcherError,
    StorageError,
    Store,
    Watch,
)
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)

WAKE_AT_ONCE: Final = 50
"""How many watches are woken before the event loop runs other tasks."""


class ResourceCache:
    """All objects under a prefix of the store, by key."""

    def __init__(
        self,
        store: Store,
        prefix: str,
        codec: Codec,
        *,
        window: int = WINDOW,
        window_bytes: int = WINDOW_BYTES,
        budget: WindowBudget | None = None,
        index: Callable[[bytes], Hashable] | None = None,
    ) -> None:
        self.prefix = prefix
        self.codec = codec
        self.is_current = False
        """Whether it has everything that was written. If not, `refresh` may have to wait for it."""
        self._revision = 0  # a lower bound: `revision` adds what the store has announced since
        self.last_change = 0
        """The revision since which nothing under the prefix has changed."""
        self._store = store
        self._window_size = window
        self._max_changes = window + window // SHRINK_BY
        self._budget = budget or WindowBudget(window_bytes)
        self._budget.add(self)
        self._index = index
        self._objects: dict[str, StoredObject] = {}
        self.get: Callable[[str], StoredObject | None] = self._objects.get
        """The object of a key, if there is one."""
        self._keys: list[str] | None = None
        self._by_index: dict[Hashable, dict[str, StoredObject]] = {}
        self._changes: list[ObjectChange] = []
        self.window_bytes = 0
        """The bytes of all objects in the window."""
        self._taken = 0  # changes that have left the window
        self._window_start = 0  # the window has all changes after this revision
        self._watch: Watch | None = None
        self._withdrawals = 0  # of the store, when it was loaded
        self._follower: asyncio.Task[None] | None = None
        self._loading: asyncio.Lock = asyncio.Lock()
        self._listeners: dict[Callable[[], None], None] = {}
        self._listeners_at_once: list[Callable[[], None]] = []
        self.is_closed = False
        """Whether nothing comes any more: watchers end."""
        self.epoch = 0
        """Grows when the cache had to be loaded anew and watchers must start over."""

    async def start(self) -> None:
        """Load it, unless it is loaded already."""
        if self._watch is not None:
            return
        async with self._loading:
            if self._watch is None:
                await self._load()
                self._follower = asyncio.create_task(self._follow())

    async def _load(self) -> None:
        self._withdrawals = self._store.withdrawals
        page = await self._store.list(self.prefix)
        watch = self._store.watch(self.prefix, after=page.revision)
        watch.listener = self._on_changes
        objects: dict[str, StoredObject] = {}
        by_index: dict[Hashable, dict[str, StoredObject]] = {}
        async for entry in Pacer().each(page.entries):
            stored = objects[entry.key] = StoredObject(entry, self.codec)
            if self._index:
                by_index.setdefault(self._index(entry.value), {})[stored.key] = stored
        if self._watch is not None:
            self._watch.close()
        self._watch, self.is_current = watch, False
        self._objects, self._by_index = objects, by_index
        self.get = objects.get
        self._keys = None
        self._changes.clear()
        self.window_bytes = 0
        self._revision = self.last_change = self._window_start = page.revision
        self.epoch += 1
        self.catch_up()
        self._wake()

    async def _follow(self) -> None:
        while True:
            watch = self._watch
            assert watch is not None
            try:
                async for changes in watch:
                    self._apply([changes, *watch.pending()])
                return  # the store was closed
            except (CompactedError, SlowWatcherError):
                log.warning("%s: fell behind the store, loading it again", self.prefix)
            except StorageError as error:
                log.warning("%s: %s; loading it again", self.prefix, error)
                await asyncio.sleep(1)
            while True:
                with contextlib.suppress(StorageError):
                    await self._load()
                    break
                await asyncio.sleep(1)

    async def close(self) -> None:
        self.is_closed, self.is_current = True, False
        self._wake()
        if self._watch is not None:
            self._watch.close()
        await cancel_and_wait(self._follower)

    @property
    def is_outdated(self) -> bool:
        """Whether it may have what the store has withdrawn. It is being loaded again."""
        return self._withdrawals != self._store.withdrawals

    @property
    def revision(self) -> int:
        """The revision that it shows."""
        return (
            max(self._revision, self._store.known_revision) if self.is_current else self._revision
        )

    @property
    def shown_revision(self) -> int:
        """The revision that readers are told: it and its objects become durable together."""
        return max(self.last_change, min(self.revision, self._store.durable))

    # --- following ---

    async def refresh(self) -> int:
        """Take in everything that was written before this call; the revision it then shows."""
        if self._watch is None:
            await self.start()
        while True:
            revision = await self._store.revision()
            if not (self.is_current or self.catch_up()):
                await asyncio.sleep(0.01)
                continue
            if self._revision < revision:
                self._revision = revision
            return self.revision

    def catch_up(self) -> bool:
        """Take in what has arrived, without waiting; False before it is loaded, or while it is loaded again."""
        watch = self._watch
        if watch is None:
            return False
        try:
            pending = watch.pending()
        except (CompactedError, SlowWatcherError):
            self.is_current = False
            return False
        if pending:
            self._apply(pending)
        self.is_current = watch.is_listening and self._store.known_revision >= 0
        return True

    def _on_changes(self, changes: Sequence[Sequence[Change]] | None) -> None:
        """Takes changes as they are published; None when the watch is cut off."""
        if changes is None:
            self.is_current = False
        else:
            self._apply(changes)

    def _apply(self, pending: Sequence[Sequence[Change]]) -> None:
        """The changes of some revisions."""
        for changes in pending:
            size = 0
            for change in changes:
                applied = self._apply_one(change)
                self._changes.append(applied)
                size += applied.size
            self.window_bytes += size
            self.last_change = changes[0].revision
            # A little at a time: to free ten thousand objects takes a tenth of a second.
            if len(self._changes) > self._max_changes:
                self.shrink_window(self.window_bytes, self._window_size)
            self._budget.grow(size, len(changes))
        if self.last_change > self._revision:
            self._revision = self.last_change
        self._wake()

    def _apply_one(self, change: Change) -> ObjectChange:
        key, entry, previous = change.key, change.entry, change.previous
        old = self._objects.get(key)
        if self._keys is not None and (old is None) != (entry is None):
            if entry is None:
                del self._keys[bisect_left(self._keys, key)]
            else:
                insort(self._keys, key)
        if old is None and previous is not None:
            old = StoredObject(previous, self.codec)
        new, size = None, 0
        if entry is None:
            self._objects.pop(key, None)
        else:
            self._objects[key] = new = StoredObject(entry, self.codec)
            size = len(entry.value)
        if old is not None and old.revision <= self._window_start:
            size += len(old.entry.value)
        if self._index:
            self._reindex(old, new)
        return ObjectChange(change.revision, old, new, size)

    def _reindex(self, old: StoredObject | None, new: StoredObject | None) -> None:
        assert self._index
        if old is not None:
            place = self._index(old.entry.value)
            group = self._by_index.get(place, {})
            group.pop(old.key, None)
            if not group:
                self._by_index.pop(place, None)
        if new is not None:
            self._by_index.setdefault(self._index(new.entry.value), {})[new.key] = new

    def shrink_window(self, max_bytes: int, max_changes: int) -> None:
        """Forget the oldest changes until the rest is small enough, but never part of a revision."""
        changes = self._changes
        cut = max(len(changes) - max_changes, 0)
        size = self.window_bytes - sum(change.size for change in changes[:cut])
        while size > max_bytes:
            size -= changes[cut].size
            cut += 1
        while 0 < cut < len(changes) and changes[cut].revision == changes[cut - 1].revision:
            size -= changes[cut].size
            cut += 1
        if cut:
            self._window_start = changes[cut - 1].revision
            self._taken += cut
            self.window_bytes = size
            del changes[:cut]

    def _wake(self) -> None:
        for listener in self._listeners_at_once:
            listener()
        if len(self._listeners) <= WAKE_AT_ONCE:
            for listener in tuple(self._listeners):
                listener()
        else:
            self._wake_some(tuple(self._listeners), 0)

    def _wake_some(self, listeners: tuple[Callable[[], None], ...], start: int) -> None:
        """Each has something to send now: not all at once, so that requests are answered in between."""
        for listener in listeners[start : start + WAKE_AT_ONCE]:
            listener()
        if start + WAKE_AT_ONCE < len(listeners):
            loop = asyncio.get_running_loop()
            loop.call_soon(self._wake_some, listeners, start + WAKE_AT_ONCE)

    # --- reading ---

    @property
    def count(self) -> int:
        """How many objects it holds."""
        return len(self._objects)

    def select(self, prefix: str, after: str = "") -> list[StoredObject]:
        """All objects whose key starts with `prefix` and comes after `after`, in order."""
        keys = self._sorted_keys()
        start = bisect_left(keys, prefix)
        if after:
            start = max(start, bisect_right(keys, after))
        end = bisect_left(keys, prefix + "\U0010ffff", lo=start)
        return [self._objects[key] for key in keys[start:end]]

    @property
    def index_values(self) -> KeysView[Hashable]:
        """Every value that the index has objects for."""
        return self._by_index.keys()

    def indexed(self, place: Hashable) -> Iterable[StoredObject]:
        """The objects that the cache's index puts in this place."""
        return self._by_index.get(place, {}).values()

    def _sorted_keys(self) -> list[str]:
        if self._keys is None:
            self._keys = sorted(self._objects)
        return self._keys

    # --- watching ---

    @property
    def window_length(self) -> int:
        return len(self._changes)

    @property
    def window_start(self) -> int:
        """The window has every change after this revision."""
        return self._window_start

    @property
    def position(self) -> int:
        """The cursor of a watcher that has seen everything."""
        return self._taken + len(self._changes)

    def position_after(self, revision: int) -> int:
        """The cursor of a watcher that has seen everything up to `revision`."""
        seen = bisect_right(self._changes, revision, key=lambda change: change.revision)
        return self._taken + seen

    def changes_from(self, position: int, limit: int) -> list[ObjectChange] | None:
        """What comes after a cursor; None if the window has moved past it."""
        start = position - self._taken
        if start < 0:
            return None
        return self._changes[start : start + limit]

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change and reload, until `unlisten`."""
        self._listeners[listener] = None

    def listen_at_once(self, listener: Callable[[], None]) -> None:
        """The same, before the write that makes the change returns, however many listen. It only notes that there is news."""
        self._listeners_at_once.append(listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        self._listeners.pop(listener, None)
