"""watch: a stream of events from any kept version on.

A watcher is a cursor into the window of its resource's cache. It wakes when the cache changes, writes all
that is new in one piece, and sleeps again. One that asks for what has left the window reads the store's
own history until it has caught up.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError
from allot.apiserver.http.rendering import Renderer
from allot.apiserver.http.requests import ApiRequest, options_error
from allot.apiserver.pacing import LARGE, Pacer, Priority, Workers, begin_work
from allot.apiserver.registry.conversion import Converter, is_converted
from allot.apiserver.registry.reading import Reader, revision_of
from allot.apiserver.registry.selection import Selection
from allot.apiserver.watch_cache.cache import ResourceCache
from allot.apiserver.watch_cache.object_changes import ObjectChange
from allot.apiserver.watch_cache.storage_errors import api_errors_for_storage
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.storage.interface import Change, SlowWatcherError, Store, StoreUnavailableError
from allot.validation.fields import FieldError, FieldPath, forbidden

T = TypeVar("T")

BOOKMARK_SECONDS: Final = 60.0
BATCH: Final = 500
"""Changes that are looked at together."""
CHUNK_BYTES: Final = 64 * 1024
"""Events are written in pieces of about this size."""
_type_of: Final = attrgetter("type")
INITIAL_EVENTS_END: Final = {"k8s.io/initial-events-end": "true"}


class WatchOptions(NamedTuple):
    """Where a watch begins and how long it lasts."""

    resource_version: str
    initial_events: bool | None
    bookmarks: bool
    timeout_seconds: float

    @property
    def starts_with_objects(self) -> bool:
        """Whether the objects that are already there come first, as ADDED."""
        if self.initial_events is not None:
            return self.initial_events
        return self.resource_version in ("", "0")


def watch_options(request: ApiRequest) -> WatchOptions:
    """The options of a watch; 422 for combinations that mean nothing."""
    query = request.query
    match = query.get("resourceVersionMatch", "")
    initial = request.flag("sendInitialEvents") if "sendInitialEvents" in query else None
    errors = list(_problems(initial, match))
    if errors:
        raise options_error("ListOptions", errors)
    version = query.get("resourceVersion", "")
    if version:
        revision_of(version)
    seconds = request.number("timeoutSeconds")
    timeout = float(seconds) if seconds else random.uniform(1800, 3600)  # noqa: S311
    return WatchOptions(version, initial, request.flag("allowWatchBookmarks"), timeout)


def _problems(initial: bool | None, match: str) -> Iterable[FieldError]:
    if initial is None:
        if match:
            yield forbidden(
                FieldPath("resourceVersionMatch"),
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
        return
    if match != "NotOlderThan":
        yield forbidden(
            FieldPath("resourceVersionMatch"),
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )


class Watcher:
    """One client's watch."""

    def __init__(
        self,
        store: Store,
        cache: ResourceCache,
        selection: Selection,
        renderer: Renderer,
        options: WatchOptions,
        converter: Converter,
        workers: Workers,
    ) -> None:
        self._store = store
        self._workers = workers
        self._cache = cache
        self._selection = selection
        self._is_everything = selection.is_everything
        self._is_whole = selection.is_everything and selection.prefix == cache.prefix
        """Whether every change of the cache is selected."""
        self._renderer = renderer
        self._shows_stored = (
            type(renderer) is Renderer and renderer.version == cache.codec.storage_version
        )
        """Whether objects are sent as they are stored, so that only selectors look into them."""
        self._sends_stored = self._shows_stored and self._is_everything
        """Whether nothing looks into objects: events are copies of what is stored."""
        self._options = options
        self._converter = converter if is_converted(selection.resource) else None
        self._has_news = False
        """Whether there is something to look at since the changes were read."""
        self._waiting: asyncio.Future[None] | None = None
        self._is_due = False
        """Whether it is time for a bookmark, or for the end."""
        self.is_paced = False
        """Whether it is one of many, which share iterations of the event loop with all requests."""
        self._stopped = False
        self._converting: asyncio.Task[Any] | None = None
        self._position = 0
        self._seen = 0

    def stop(self) -> None:
        """End the stream at the next opportunity: the client is gone, or the server is going."""
        self._stopped = True
        self._wake()
        if self._converting is not None:
            self._converting.cancel()

    async def prepare(self, reader: Reader) -> None:
        """Wait until the cache can serve this watch; raises what is better said before the stream."""
        version = self._options.resource_version
        await reader.at_least(self._cache, version)
        self._seen = self._cache.shown_revision
        if not self._options.starts_with_objects and version:
            self._seen = int(version) or self._cache.shown_revision
        self._epoch = self._cache.epoch

    async def stream(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        self._now = loop.time
        self._deadline = self._now() + self._options.timeout_seconds
        self._cache.listen(self._wake)
        alarm: asyncio.TimerHandle | None = None
        try:
            yield b""  # the client learns at once that the watch has begun
            async for chunk in self._until_now():
                yield chunk
            alarm = self._set_alarm(loop)
            while not (self._stopped or (self._is_due and self._now() >= self._deadline)):
                self._has_news = False
                changes = self._next_changes()
                if changes:
                    if self._converter is not None:
                        changes = await self._shown(changes)
                    if self.is_paced:
                        await begin_work(Priority.PAUSED)  # a change wakes all watches
                    if self._fit_together(changes):  # mostly
                        if self._is_whole:
                            lines = map(self._renderer.event, changes, map(_type_of, changes))
                        else:
                            lines = map(self._line, changes)
                        if chunk := b"".join(lines):
                            yield chunk
                    else:
                        async for chunk in self._chunks(changes, self._line, self._work_on_change):
                            yield chunk
                    if self._has_news or self._is_due or self._cache.is_closed:
                        continue
                elif self._cache.is_closed:
                    return
                if not (self._is_due or self._has_news):
                    self._waiting = waiting = loop.create_future()
                    await waiting
                if self._is_due:
                    alarm = self._set_alarm(loop)
                    if self._options.bookmarks and await self._is_caught_up():
                        yield self._renderer.bookmark(self._cache.shown_revision)
        except ApiError as error:
            yield self._renderer.error(error)
        finally:
            self._cache.unlisten(self._wake)
            if alarm is not None:
                alarm.cancel()

    def _wake(self) -> None:
        self._has_news = True
        waiting = self._waiting
        if waiting is not None:
            self._waiting = None
            if not waiting.done():  # it may have been cancelled
                waiting.set_result(None)

    async def _until_now(self) -> AsyncIterator[bytes]:
        """The objects that are already there, and changes that have left the window."""
        if self._options.starts_with_objects:
            # Nothing is awaited between taking the objects and noting the revision they show.
            objects = self._cache.select(self._selection.prefix)
            self._seen = self._cache.shown_revision
            async for chunk in self._initial(objects):
                yield chunk
        if self._seen < self._cache.window_start:
            async for chunk in self._history():
                yield chunk
        self._position = self._cache.position_after(self._seen)

    async def _initial(self, objects: list[StoredObject]) -> AsyncIterator[bytes]:
        matches, render = self._selection.matches, self._renderer.initial
        shown: Sequence[StoredObject] = objects
        if self._converter is not None:
            resource = self._selection.resource
            shown = await self._unless_stopped(self._converter.all_shown(resource, objects))
            if self._stopped:
                return

        def line(stored: StoredObject) -> bytes:
            return render(stored) if matches(stored) else b""

        async for chunk in self._chunks(shown, line, self._work_on_object):
            yield chunk
        if self._options.initial_events and self._options.bookmarks:
            yield self._renderer.bookmark(self._seen, INITIAL_EVENTS_END)

    async def _history(self) -> AsyncIterator[bytes]:
        """Changes that have left the window, from the store, until the window has the next one."""
        with api_errors_for_storage():
            oldest = await self._store.oldest()
            # From here on the store's watches have all that the cache was loaded with.
            await self._store.revision()
        if self._seen < oldest:
            raise api_errors.too_old(self._seen, oldest)
        async with self._store.watch(self._cache.prefix, after=self._seen) as watch:
            while self._seen < (start := self._cache.window_start) and not self._is_over:
                with api_errors_for_storage():
                    try:
                        batches = await watch.backlog()
                    except SlowWatcherError:
                        raise api_errors.too_old(self._seen, start) from None
                changes: Iterable[ObjectChange]
                changes = map(self._past_change, chain.from_iterable(batches))
                if self._converter is not None:
                    changes = await self._shown(changes)
                async for chunk in self._chunks(changes, self._line, self._work_on_change):
                    yield chunk
                self._seen = batches[-1][0].revision if batches else start

    def _past_change(self, change: Change) -> ObjectChange:
        codec = self._cache.codec
        old = StoredObject(change.previous, codec) if change.previous else None
        new = StoredObject(change.entry, codec) if change.entry else None
        return ObjectChange(change.revision, old, new)

    async def _shown(self, changes: Iterable[ObjectChange]) -> list[ObjectChange]:
        """The changes in the version of the request, as far as it needs them."""
        assert self._converter is not None
        resource = self._selection.resource
        shown = self._converter.changes_shown(resource, changes, self._needed_states)
        return [*await self._unless_stopped(shown)]

    async def _unless_stopped(self, converting: Coroutine[Any, Any, Sequence[T]]) -> Sequence[T]:
        """What is converted; nothing if the watch is stopped before the webhook answers."""
        task = self._converting = asyncio.ensure_future(converting)
        try:
            await asyncio.wait((task,))
            return () if task.cancelled() else task.result()
        finally:
            self._converting = None
            task.cancel()

    def _needed_states(self, change: ObjectChange) -> tuple[StoredObject | None, ...]:
        if not change.key.startswith(self._selection.prefix):
            return ()
        if self._is_everything:
            return (change.shown(change.type),)
        return change.old, change.new

    def _next_changes(self) -> list[ObjectChange]:
        """Changes that have not been sent; none if there are no more."""
        cache = self._cache
        while True:
            changes = cache.changes_from(self._position, BATCH)
            if changes is None or cache.epoch != self._epoch:
                raise api_errors.too_old(self._seen, cache.window_start)
            if not changes:
                return changes
            count = len(changes)
            self._position += count
            self._has_news = count == BATCH  # there may be more
            if changes[0].revision <= self._seen:
                # The store's history was ahead of the cache, so these have been sent.
                changes = [change for change in changes if change.revision > self._seen]
            if changes:
                self._seen = changes[-1].revision
                return changes

    def _set_alarm(self, loop: asyncio.AbstractEventLoop) -> asyncio.TimerHandle:
        now, due = loop.time(), self._deadline
        self._is_due = now >= due
        if self._options.bookmarks:
            due = min(due, now + BOOKMARK_SECONDS)
        return loop.call_at(due, self._ring)

    def _ring(self) -> None:
        self._is_due = True
        self._wake()

    async def _is_caught_up(self) -> bool:
        """Whether everything in the store has been sent."""
        try:
            await self._cache.refresh()
        except StoreUnavailableError:
            return False  # it may be back before the next bookmark is due, and nothing is lost
        return not self._cache.changes_from(self._position, 1)

    @property
    def _is_over(self) -> bool:
        return self._stopped or self._now() >= self._deadline

    def _line(self, change: ObjectChange) -> bytes:
        """The event of a change; empty if it is not selected."""
        selection = self._selection
        type_: str | None
        if self._is_everything:
            type_ = change.type if change.key.startswith(selection.prefix) else None
        else:
            type_ = seen_as(selection.matches, change)
        return b"" if type_ is None else self._renderer.event(change, type_)

    def _fit_together(self, changes: Sequence[ObjectChange]) -> bool:
        """Whether the events of the changes make one piece, with little work."""
        if self._sends_stored:
            if len(changes) == 1:
                return True
            sizes = [
                len(state.entry.value) for change in changes if (state := change.new or change.old)
            ]
            return sum(sizes) <= CHUNK_BYTES
        if self._shows_stored:
            states = [state for change in changes for state in (change.old, change.new) if state]
            if sum([len(state.entry.value) for state in states]) <= LARGE:
                return True
        return len(changes) == 1 and self._work_on_change(changes[0]) <= LARGE

    def _work_on_change(self, change: ObjectChange) -> int:
        """How much work the event of a change is, in bytes of JSON."""
        if self._sends_stored:
            return 0
        old, new = change.old, change.new
        work = 0 if old is None else self._work_on_object(old)
        return work if new is None else max(work, self._work_on_object(new))

    def _work_on_object(self, stored: StoredObject) -> int:
        if self._shows_stored:
            return 0 if self._sends_stored else stored.decoding_work
        return len(stored.entry.value)

    async def _chunks(
        self, items: Iterable[T], line_of: Callable[[T], bytes], work_on: Callable[[T], int]
    ) -> AsyncIterator[bytes]:
        """Lines in pieces that are worth sending, with pauses while they are made; long ones in a thread."""
        pacer = Pacer()
        parts: list[bytes] = []
        size = 0
        for item in items:
            work = work_on(item)
            if work <= LARGE:
                line = line_of(item)
            else:
                line = await self._workers.run(work, partial(line_of, item))
            if line:
                parts.append(line)
                size += len(line)
            if size >= CHUNK_BYTES:
                yield b"".join(parts)
                parts, size = [], 0
            if pacer.is_due:
                await pacer.pause()
        if parts:
            yield b"".join(parts)


def seen_as(matches: Callable[[StoredObject | None], bool], change: ObjectChange) -> str | None:
    """The event type of a change for a watch with selectors; None if it is not selected."""
    was, is_ = matches(change.old), matches(change.new)
    if was and is_:
        return "MODIFIED"
    if is_:
        return "ADDED"
    return "DELETED" if was else None
