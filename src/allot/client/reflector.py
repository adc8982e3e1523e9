"""The reflector of an informer: keeps a store in step with a resource, by list and watch (client-go's Reflector).

    list ──► watch ──► end of the watch, lost connection ──► watch from the last resourceVersion
     ▲         │
     └── 410: the resourceVersion has expired ◄──┘

A resource that the server does not serve counts as empty, and is retried.

The list is a streaming list (`sendInitialEvents`) if the server supports it, else a paged list. A relist is compared
with the store: the store gets each missed change once, first deletions, then additions and updates.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Container, Iterable
from typing import Final, Generic, Protocol, TypeVar

from allot.api.identities import ObjectKey
from allot.backoff import Backoff
from allot.client.client import Client
from allot.client.clock import Clock
from allot.client.codecs import Unreadable, UnreadableEvent, WatchEvent, strip_managed_fields
from allot.client.cooperative import with_pauses
from allot.client.errors import ApiStatusError, ClientError, TransportError
from allot.client.options import Scope
from allot.client.resources import Resource

log = logging.getLogger(__name__)

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

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


def _number(resource_version: str) -> int:
    """A resourceVersion as a number, for sorting; 0 if it is not numeric."""
    return int(resource_version) if resource_version.isdecimal() else 0


class IncompleteListError(TransportError):
    """A streaming list that ended, or fell silent, before the server marked it as complete."""

    def __init__(self, message: str) -> None:
        super().__init__(message, was_sent=True)


class ReflectorStore(Protocol[T_contra]):
    """What a reflector keeps up to date. Objects have no managedFields: a write without them leaves the stored ones."""

    def keys(self) -> Iterable[ObjectKey]: ...

    def put(self, obj: T_contra) -> None: ...

    def drop(self, key: ObjectKey, last: T_contra | None = None) -> None:
        """Delete an object; `last` is its last state, if known."""


class Reflector(Generic[T]):
    """Lists and watches one resource for a store."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        scope: Scope,
        store: ReflectorStore[T],
        *,
        streaming: bool,
        backoff: Backoff,
        chance: Callable[[], float],
    ) -> None:
        self.resource_version = ""
        """The resourceVersion of the store."""
        self.lists = 0
        """The number of completed lists."""
        self.synced = asyncio.Event()
        """Set when the first list is in the store, or the resource is not served."""
        self.failure: Exception | None = None
        """Why the last list or watch failed; None while one succeeds."""
        self._client = client
        self._resource = resource
        self._scope = scope
        self._store = store
        self._clock: Clock = client.clock
        self._streaming = streaming
        self._backoff = backoff
        self._chance = chance
        self._failures = 0
        self._failed_streams = 0
        """Streaming lists in a row whose connection was lost."""

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                await self._list_or_watch()
            except ApiStatusError as error:
                await self._recover(error)
            except ClientError as error:
                await self._wait_after(error)
            except Exception as error:
                log.exception("%s: unexpected exception; listing again", self._resource)
                self.resource_version = ""
                await self._wait_after(error)

    async def _list_or_watch(self) -> None:
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
            log.info("%s: %s; listing again", self._resource, error)
            has_come_at_once = not self.resource_version or self._failures
            self.resource_version = ""
            self._failures += 1
            if has_come_at_once:
                await self._wait_after(error)
        else:
            if error.is_not_found and not self.synced.is_set():
                log.warning("%s: not served; treated as empty until it is", self._resource)
                self.synced.set()
            await self._wait_after(error)

    async def _wait_after(self, error: Exception) -> None:
        self._failures += 1
        self.failure = error
        wait = self._backoff.seconds(self._failures, self._chance())
        if isinstance(error, ApiStatusError) and error.retry_after_seconds is not None:
            wait = max(wait, error.retry_after_seconds)
        is_unserved = isinstance(error, ApiStatusError) and error.is_not_found
        level = logging.WARNING if self._failures > 3 and not is_unserved else logging.INFO
        log.log(level, "%s: %s; retrying in %.1f s", self._resource, error, wait)
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
            log.info("%s: streaming list failed (%s); listing pages", self._resource, error)
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
        first = not self.synced.is_set()
        page = await self._client.list(
            self._resource, self._scope, resource_version="0" if first else "", lenient=True
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
            key = self._resource.codec.key
            while True:
                batch = await self._next_initial(batches)
                for position, event in enumerate(batch):
                    if event.ends_initial_events:
                        await self._take_all(found.values(), event.resource_version, kept)
                        await self._take_in_pieces(batch[position + 1 :])
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
        self, batches: AsyncIterator[list[WatchEvent[T]]]
    ) -> list[WatchEvent[T]]:
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
        codec, store = self._resource.codec, self._store
        now: dict[ObjectKey, T] = {}
        number_by_key: dict[ObjectKey, int] = {}
        async for obj in with_pauses(objects, KEYS_AT_ONCE):
            strip_managed_fields(obj)
            key = codec.key(obj)
            now[key] = obj
            number_by_key[key] = _number(codec.resource_version(obj))
        known = tuple(store.keys())
        gone = [key for key in known if key not in now and key not in kept]
        async for key in with_pauses(gone, EVENTS_AT_ONCE):
            self._store.drop(key)
        # Oldest change first, so that an object releases a device before another one takes it.
        async for key in with_pauses(sorted(now, key=number_by_key.__getitem__), EVENTS_AT_ONCE):
            self._store.put(now[key])
        self.resource_version = resource_version
        self.failure = None
        self.synced.set()

    # --- watches ---

    def _open(
        self, *, initial_events: bool = False
    ) -> contextlib.AbstractAsyncContextManager[AsyncIterator[list[WatchEvent[T]]]]:
        least, most = WATCH_SECONDS
        return self._client.watch(
            self._resource,
            self._scope,
            resource_version=self.resource_version,
            initial_events=initial_events,
            timeout_seconds=int(least + (most - least) * self._chance()),
            managed_fields=False,
        )

    async def _watch(self) -> bool:
        """Whether any event was received."""
        async with self._open() as batches:
            self.failure = None
            return await self._take_batches(batches)

    async def _take_batches(self, batches: AsyncIterator[list[WatchEvent[T]]]) -> bool:
        came = False
        async for batch in batches:
            came = True
            self._failures = 0
            if len(batch) < EVENTS_AT_ONCE:
                self._take(batch)
            else:
                await self._take_in_pieces(batch)
        return came

    async def _take_in_pieces(self, batch: list[WatchEvent[T]]) -> None:
        """Yields to other tasks."""
        for start in range(0, len(batch), EVENTS_AT_ONCE):
            self._take(batch[start : start + EVENTS_AT_ONCE])
            await asyncio.sleep(0)

    def _take(self, events: list[WatchEvent[T]]) -> None:
        store = self._store
        for event in events:
            obj = event.object
            if obj is None:
                self._take_without_object(event)
            elif event.type == "DELETED":
                store.drop(self._resource.codec.key(obj), obj)
            else:
                store.put(obj)
            if event.resource_version:
                self.resource_version = event.resource_version

    def _take_without_object(self, event: WatchEvent[T]) -> None:
        if isinstance(event, UnreadableEvent):
            self._report(event.unreadable)
            if event.type == "DELETED":
                self._store.drop(event.unreadable.key)

    def _report(self, unreadable: Unreadable) -> None:
        """An object that cannot be decoded stays in its last state, or missing, until it changes."""
        log.error("%s %s: skipped, cannot be decoded: %s", self._resource, *unreadable)
