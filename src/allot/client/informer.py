"""Informers: a local store of a resource, kept up to date by list and watch, with event handlers.

    list ──► watch ──► end of the watch, lost connection ──► watch from the last resourceVersion
     ▲         │
     └── 410: the resourceVersion has expired ◄──┘

A resource that the server does not serve counts as empty, and is retried.

The list is a streaming list (`sendInitialEvents`) if the server supports it, else a paged list. A relist is compared
with the store: handlers are called once for each missed change, first for deletions, then for additions and updates.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Callable, Container, Iterable, Mapping
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from allot.api.identities import ObjectKey
from allot.api.managed_fields import without_managed_fields
from allot.client.client import Client
from allot.client.clock import Clock
from allot.client.codecs import Unreadable, UnreadableEvent, WatchEvent
from allot.client.cooperative import with_pauses
from allot.client.errors import ApiStatusError, ClientError, TransportError
from allot.client.object_store import Change, IndexFunction, ObjectStore
from allot.client.options import EVERYTHING, Scope
from allot.client.resources import Resource
from allot.client.retries import Backoff

log = logging.getLogger(__name__)

T = TypeVar("T")

WATCH_SECONDS: Final = (300, 600)
"""Watches have a random timeout between these, so that they do not reconnect at the same time."""
SHORT_WATCH_SECONDS: Final = 1.0
"""A watch that ends sooner without an event counts as a failure."""
INITIAL_EVENTS_SECONDS: Final = 10.0
"""Idle timeout of a streaming list; after it the server is assumed not to support streaming lists."""
MAX_STREAM_FAILURES: Final = 3
"""Streaming lists that may lose their connection before a paged list is tried."""
EVENTS_AT_ONCE: Final = 100
"""Events that are processed before other tasks run."""


KEYS_AT_ONCE: Final = 1000
"""The same for keys of a list."""
SKIPPED_BACKOFF: Final = Backoff(0.1, 600.0)


def _number(resource_version: str) -> int:
    """A resourceVersion as a number, for sorting; 0 if it is not numeric."""
    return int(resource_version) if resource_version.isdecimal() else 0


class IncompleteListError(TransportError):
    """A streaming list that ended, or fell silent, before the server marked it as complete."""

    def __init__(self, message: str) -> None:
        super().__init__(message, was_sent=True)


class Handlers(NamedTuple, Generic[T]):
    """Called in order, in the event loop, after the store has changed."""

    on_add: Callable[[T], None] | None = None
    on_update: Callable[[T, T], None] | None = None
    on_delete: Callable[[T], None] | None = None

    def call(self, change: Change[T]) -> None:
        old, new = change
        if new is None:
            if self.on_delete is not None and old is not None:
                self.on_delete(old)
        elif old is None:
            if self.on_add is not None:
                self.on_add(new)
        elif self.on_update is not None:
            self.on_update(old, new)


class Informer(Generic[T]):
    """Keeps a store of one resource. The store is complete once `has_synced`."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        scope: Scope = EVERYTHING,
        *,
        indexes: Mapping[str, IndexFunction[T]] | None = None,
        streaming: bool = True,
        backoff: Backoff = Backoff(0.1, 10.0),  # noqa: B008 - a value
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.resource = resource
        self.scope = scope
        self.store: ObjectStore[T] = ObjectStore(resource.codec, indexes or {})
        self.resource_version = ""
        """The resourceVersion of the store."""
        self.lists = 0
        """The number of completed lists."""
        self._client = client
        self._clock: Clock = client.clock
        self._streaming = streaming
        self._backoff = backoff
        self._chance = chance
        self._handlers: tuple[Handlers[T], ...] = ()
        self._synced = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._failed_streams = 0
        """Streaming lists in a row whose connection was lost."""
        self._skipped: dict[ObjectKey, T] = {}
        """Objects for which an index function raised an exception."""
        self._retrying: asyncio.Task[None] | None = None

    # --- lister and event handlers ---

    @property
    def has_synced(self) -> bool:
        """Whether the first list is complete, and all handlers were called for it."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def add_handlers(
        self,
        on_add: Callable[[T], None] | None = None,
        on_update: Callable[[T, T], None] | None = None,
        on_delete: Callable[[T], None] | None = None,
    ) -> Handlers[T]:
        """Register event handlers. `on_add` is called immediately for existing objects."""
        handlers = Handlers(on_add, on_update, on_delete)
        for obj in self.store.list():
            self._call(handlers, Change(None, obj))
        self._handlers = (*self._handlers, handlers)
        return handlers

    def remove_handlers(self, handlers: Handlers[T]) -> None:
        self._handlers = tuple(known for known in self._handlers if known is not handlers)

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """Add an index for `by_index`. Adding the same index again has no effect."""
        self.store.add_index(name, function)

    def get(self, key: ObjectKey) -> T | None:
        return self.store.get(key)

    def list(self) -> list_[T]:
        return self.store.list()

    def by_index(self, name: str, value: str) -> list_[T]:
        return self.store.by_index(name, value)

    # --- lifecycle ---

    def start(self) -> None:
        """Start list and watch, unless started."""
        if self._task is None:
            self._task = asyncio.create_task(self.run(), name=f"informer of {self.resource}")

    async def stop(self) -> None:
        """Stop; no handler is called after it returns."""
        task, self._task = self._task, None
        for each in (task, self._retrying):
            if each is not None:
                each.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await each

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                await self._follow_once()
            except ApiStatusError as error:
                await self._recover(error)
            except ClientError as error:
                await self._wait_after(error)
            except Exception as error:
                log.exception("%s: unexpected exception; listing again", self.resource)
                self.resource_version = ""
                await self._wait_after(error)

    async def _follow_once(self) -> None:
        """One list, or one watch from the last resourceVersion."""
        started = self._clock.now()
        try:
            if not self.resource_version:
                await self._list()
            elif not await self._watch() and self._clock.now() - started < SHORT_WATCH_SECONDS:
                raise TransportError("the watch ended immediately", was_sent=True)
        finally:
            if self._clock.now() - started >= SHORT_WATCH_SECONDS:
                self._failures = 0

    async def _recover(self, error: ApiStatusError) -> None:
        if error.is_expired or error.is_version_too_large:
            log.info("%s: %s; listing again", self.resource, error)
            has_come_at_once = not self.resource_version or self._failures
            self.resource_version = ""
            self._failures += 1
            if has_come_at_once:
                await self._wait_after(error)
        else:
            if error.is_not_found and not self.has_synced:
                log.warning("%s: not served; treated as empty until it is", self.resource)
                self._synced.set()
            await self._wait_after(error)

    async def _wait_after(self, error: Exception) -> None:
        self._failures += 1
        wait = self._backoff.seconds(self._failures, self._chance())
        if isinstance(error, ApiStatusError) and error.retry_after_seconds is not None:
            wait = max(wait, error.retry_after_seconds)
        is_unserved = isinstance(error, ApiStatusError) and error.is_not_found
        level = logging.WARNING if self._failures > 3 and not is_unserved else logging.INFO
        log.log(level, "%s: %s; retrying in %.1f s", self.resource, error, wait)
        await self._clock.sleep(wait)

    # --- lists ---

    async def _list(self) -> None:
        """A streaming list if the server can do that, else a paged list.

        An API server may accept the request and fail in the middle of it, such as one whose etcd has no
        watch progress: any error of the server before the list is complete leads to a paged list.
        """
        if not self._streaming:
            await self._page_list()
            return
        try:
            await self._stream_list()
        except ClientError as error:
            if self.resource_version or not self._should_list_pages(error):
                raise
            log.info("%s: streaming list failed (%s); listing pages", self.resource, error)
        else:
            self._failed_streams = 0
            return
        await self._page_list()

    def _should_list_pages(self, error: ClientError) -> bool:
        """Whether a paged list may work where a streaming list failed with this error."""
        if isinstance(error, ApiStatusError):
            if error.code in (400, 422):
                self._streaming = False
            return not (
                error.is_not_found
                or error.is_unauthorized
                or error.is_expired
                or error.is_version_too_large
                or error.code == 429
                or error.retry_after_seconds is not None
            )
        if isinstance(error, TransportError) and not isinstance(error, IncompleteListError):
            # A lost connection says nothing about streaming lists, unless only they lose it.
            self._failed_streams += error.was_sent
            return self._failed_streams >= MAX_STREAM_FAILURES
        return True

    async def _page_list(self) -> None:
        """The first list may come from the server's cache (resourceVersion 0); relists must be consistent."""
        first = not self.has_synced
        page = await self._client.list(
            self.resource, self.scope, resource_version="0" if first else "", lenient=True
        )
        for unreadable in page.unreadable:
            self._report(unreadable)
        kept = {unreadable.key for unreadable in page.unreadable}
        await self._take_all(page.items, page.resource_version, kept)

    async def _stream_list(self) -> None:
        """A watch that begins with all existing objects. It continues as a watch."""
        async with self._open(initial_events=True) as batches:
            found: dict[ObjectKey, T] = {}
            kept: set[ObjectKey] = set()
            key = self.resource.codec.key
            while True:
                batch = await self._next_initial(batches)
                for position, event in enumerate(batch):
                    if event.ends_initial_events:
                        await self._take_all(found.values(), event.resource_version, kept)
                        await self._take(batch[position + 1 :])
                        await self._take_batches(batches)
                        return
                    if event.object is not None and event.type == "DELETED":
                        found.pop(key(event.object), None)
                    elif event.object is not None:
                        found[key(event.object)] = event.object
                    elif isinstance(event, UnreadableEvent):
                        self._report(event.unreadable)
                        kept.add(event.unreadable.key)

    async def _next_initial(
        self, batches: AsyncIterator[list_[WatchEvent[T]]]
    ) -> list_[WatchEvent[T]]:
        try:
            async with asyncio.timeout(INITIAL_EVENTS_SECONDS):
                return await anext(batches)
        except StopAsyncIteration:
            raise IncompleteListError("the list ended before it was complete") from None
        except TimeoutError:
            self._streaming = False
            raise IncompleteListError("the list never became complete") from None

    async def _take_all(
        self, objects: Iterable[T], resource_version: str, kept: Container[ObjectKey]
    ) -> None:
        """Replace the store by a list: deletions first, then additions and updates.

        Objects in `kept` could not be decoded, and stay unchanged. Yields to other tasks.
        """
        self.lists += 1
        codec, store = self.resource.codec, self.store
        now: dict[ObjectKey, T] = {}
        number_by_key: dict[ObjectKey, int] = {}
        async for obj in with_pauses(objects, KEYS_AT_ONCE):
            key = codec.key(obj)
            now[key] = obj
            number_by_key[key] = _number(codec.resource_version(obj))
        known = tuple(store.keys())
        gone = [key for key in known if key not in now and key not in kept]
        async for key in with_pauses(gone, EVENTS_AT_ONCE):
            self._drop(key)
        # Oldest change first, so that an object releases a device before another one takes it.
        async for key in with_pauses(sorted(now, key=number_by_key.__getitem__), EVENTS_AT_ONCE):
            self._put(now[key])
        self.resource_version = resource_version
        self._synced.set()

    # --- watches ---

    def _open(
        self, *, initial_events: bool = False
    ) -> contextlib.AbstractAsyncContextManager[AsyncIterator[list_[WatchEvent[T]]]]:
        least, most = WATCH_SECONDS
        return self._client.watch(
            self.resource,
            self.scope,
            resource_version=self.resource_version,
            initial_events=initial_events,
            timeout_seconds=int(least + (most - least) * self._chance()),
        )

    async def _watch(self) -> bool:
        """Whether any event was received."""
        async with self._open() as batches:
            return await self._take_batches(batches)

    async def _take_batches(self, batches: AsyncIterator[list_[WatchEvent[T]]]) -> bool:
        came = False
        async for batch in batches:
            came = True
            self._failures = 0
            await self._take(batch)
        return came

    async def _take(self, batch: list_[WatchEvent[T]]) -> None:
        key = self.resource.codec.key
        for position, event in enumerate(batch, 1):
            type_, obj, resource_version, _ = event
            if obj is not None:
                if type_ == "DELETED":
                    self._drop(key(obj), obj)
                else:
                    self._put(obj)
            elif isinstance(event, UnreadableEvent):
                self._report(event.unreadable)
                if type_ == "DELETED":
                    self._drop(event.unreadable.key)
            if resource_version:
                self.resource_version = resource_version
            if not position % EVENTS_AT_ONCE:
                await asyncio.sleep(0)

    def _report(self, unreadable: Unreadable) -> None:
        """An object that cannot be decoded stays in its last state, or missing, until it changes."""
        log.error("%s %s: skipped, cannot be decoded: %s", self.resource, *unreadable)

    # --- objects ---

    def _put(self, obj: T) -> None:
        # Not used by listers; a write without managedFields leaves the stored ones unchanged.
        obj = without_managed_fields(obj)
        key = self.resource.codec.key(obj)
        try:
            for change in self.store.put(obj):
                self._tell(change)
        except Exception:
            log.exception("%s %s: an index function failed; skipped, retrying", self.resource, key)
            self._skipped[key] = obj
            if self._retrying is None:
                self._retrying = asyncio.create_task(self._retry_skipped())
        else:
            self._skipped.pop(key, None)

    def _drop(self, key: ObjectKey, last: T | None = None) -> None:
        self._skipped.pop(key, None)
        for change in self.store.drop(key, last):
            self._tell(change)

    async def _retry_skipped(self) -> None:
        """Retry objects for which an index function failed. Other objects are not delayed."""
        attempt = 0
        try:
            while self._skipped:
                attempt += 1
                await self._clock.sleep(SKIPPED_BACKOFF.seconds(attempt, self._chance()))
                async for obj in with_pauses(tuple(self._skipped.values()), EVENTS_AT_ONCE):
                    if self._skipped.get(self.resource.codec.key(obj)) is obj:
                        self._put(obj)
        finally:
            self._retrying = None

    def _tell(self, change: Change[T]) -> None:
        for handlers in self._handlers:
            self._call(handlers, change)

    def _call(self, handlers: Handlers[T], change: Change[T]) -> None:
        try:
            handlers.call(change)
        except Exception:
            obj = change.new if change.new is not None else change.old
            assert obj is not None
            log.exception(
                "%s %s: an event handler failed", self.resource, self.resource.codec.key(obj)
            )


list_ = list


class Companion(Protocol):
    """A shared service that starts and stops with the informers."""

    def start(self) -> None: ...

    async def stop(self) -> None: ...


C = TypeVar("C", bound=Companion)


class InformerFactory:
    """Shares informers: one per resource and scope (client-go's SharedInformerFactory)."""

    def __init__(self, client: Client, *, streaming: bool = True) -> None:
        self.client = client
        self._streaming = streaming
        self._informers: dict[tuple[Resource[object], Scope], Informer[object]] = {}
        self._companions: dict[Callable[[Client], Companion], Companion] = {}

    def informer(self, resource: Resource[T], scope: Scope = EVERYTHING) -> Informer[T]:
        """The informer of this resource; it runs after `start`."""
        found = self._informers.get((resource, scope))  # type: ignore[arg-type]
        if found is None:
            made = Informer(self.client, resource, scope, streaming=self._streaming)
            self._informers[resource, scope] = made  # type: ignore[index, assignment]
            return made
        return found  # type: ignore[return-value]

    def companion(self, make: Callable[[Client], C]) -> C:
        """The result of `make`, created once and shared. It starts and stops with the informers."""
        found = self._companions.get(make)
        if found is None:
            found = self._companions[make] = make(self.client)
        return found  # type: ignore[return-value]

    def start(self) -> None:
        """Start all informers and companions that are not running."""
        for informer in self._informers.values():
            informer.start()
        for companion in self._companions.values():
            companion.start()

    async def wait_synced(self) -> None:
        for informer in tuple(self._informers.values()):
            await informer.wait_synced()

    @property
    def has_synced(self) -> bool:
        return all(informer.has_synced for informer in self._informers.values())

    async def stop(self) -> None:
        running = (*self._informers.values(), *self._companions.values())
        await asyncio.gather(*(each.stop() for each in running))
