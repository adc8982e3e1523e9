"""Informers: a local store of a resource, kept up to date by a reflector, with indexes and event handlers.

`reflector` lists and watches; the informer owns the store, and calls event handlers after each change of it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakSet

from allot.api.identities import ObjectKey
from allot.backoff import Backoff
from allot.client.client import Client
from allot.client.cooperative import with_pauses
from allot.client.object_store import IndexFunction, ObjectStore
from allot.client.options import EVERYTHING, Scope
from allot.client.reflector import EVENTS_AT_ONCE, Reflector, ReflectorStore
from allot.client.resources import Resource
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)

SKIPPED_BACKOFF: Final = Backoff(0.1, 600.0)
"""Backoff for objects that an index function failed for."""


class ResourceEventHandlers(NamedTuple, Generic[T]):
    """Called in order, in the event loop, after the store has changed."""

    on_add: Callable[[T], None] | None = None
    on_update: Callable[[T, T], None] | None = None
    on_delete: Callable[[T], None] | None = None
    needs: Informer[Any] | None = None
    """Without objects in this one, the handlers have nothing to do and are not called."""

    @property
    def are_needed(self) -> bool:
        return self.needs is None or len(self.needs.store) > 0


Follower = Callable[[ObjectKey, T | None, T | None], None]
"""An informer that gets its objects from another one: the key, the old object (None: added), the new one (None: deleted)."""


IgnoredUpdate = Callable[[Any, Any], bool]
"""Whether an update of an object, complete before and after it, means nothing to anyone who uses an informer of a part of it."""


class Feed(Protocol):
    """What brings objects into the store of an informer: its own reflector, or an informer that is shared."""

    synced: asyncio.Event

    @property
    def resource_version(self) -> str: ...

    @property
    def lists(self) -> int: ...

    @property
    def failure(self) -> Exception | None: ...

    async def run(self) -> None: ...


class SharedStore(ReflectorStore[T_contra], Protocol[T_contra]):
    """What a source keeps up to date."""

    def follow(self, key: ObjectKey, old: T_contra | None, new: T_contra | None) -> None:
        """Do what another informer has just done: put a newer version, or drop the last one."""


class InformerSource(Protocol[T_co]):
    """Where an informer gets its objects from, if not by list and watch of its own."""

    def feed(self, store: SharedStore[T_co]) -> Feed: ...


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
        source: InformerSource[T] | None = None,
    ) -> None:
        """`source` is another informer of this process to get objects from, instead of from the API server."""
        self.resource = resource
        self.scope = scope
        self.store: ObjectStore[T] = ObjectStore(indexes or {})
        self.get = self.store.get
        self._feed: Feed = (
            source.feed(self)
            if source is not None
            else Reflector(
                client, resource, scope, self, streaming=streaming, backoff=backoff, chance=chance
            )
        )
        self._client = client
        self._clock = client.clock
        self._chance = chance
        self._set_handlers(())
        self._needed_by: WeakSet[Informer[Any]] | None = None
        """Informers with event handlers that are called only while this one has objects."""
        self._followers: tuple[Follower[T], ...] = ()
        self._task: asyncio.Task[None] | None = None
        self._skipped: dict[ObjectKey, T] = {}
        """Objects for which an index function raised an exception."""
        self._retrying: asyncio.Task[None] | None = None

    # --- lister and event handlers ---

    @property
    def has_synced(self) -> bool:
        """Whether the first list is complete, and all handlers were called for it."""
        return self._feed.synced.is_set()

    async def wait_synced(self) -> None:
        await self._feed.synced.wait()

    @property
    def resource_version(self) -> str:
        """The resourceVersion of the store."""
        return self._feed.resource_version

    @property
    def failure(self) -> Exception | None:
        """Why the store may be outdated: the last list or watch failed. None while one succeeds."""
        return self._feed.failure

    @property
    def lists(self) -> int:
        """The number of completed lists."""
        return self._feed.lists

    def add_handlers(
        self,
        on_add: Callable[[T], None] | None = None,
        on_update: Callable[[T, T], None] | None = None,
        on_delete: Callable[[T], None] | None = None,
        *,
        needs: Informer[Any] | None = None,
    ) -> ResourceEventHandlers[T]:
        """Register event handlers. `on_add` is called immediately for existing objects.

        Handlers that need another informer are called only while that has objects.
        """
        handlers = ResourceEventHandlers(on_add, on_update, on_delete, needs)
        if needs is not None:
            needs._needed_by = needs._needed_by or WeakSet()
            needs._needed_by.add(self)
        if on_add is not None and handlers.are_needed:
            self._replay(on_add)
        self._set_handlers((*self._handlers, handlers))
        return handlers

    def remove_handlers(self, handlers: ResourceEventHandlers[T]) -> None:
        self._set_handlers(tuple(known for known in self._handlers if known is not handlers))

    def _set_handlers(self, handlers: tuple[ResourceEventHandlers[T], ...]) -> None:
        self._handlers = handlers
        needed = [each for each in handlers if each.are_needed]
        self._on_add = tuple(each.on_add for each in needed if each.on_add is not None)
        self._on_update = tuple(each.on_update for each in needed if each.on_update is not None)
        self._on_delete = tuple(each.on_delete for each in needed if each.on_delete is not None)

    def _emptiness_changed(self) -> None:
        for informer in self._needed_by or ():
            informer._set_handlers(informer._handlers)

    def add_follower(self, follower: Follower[T]) -> None:
        """Call `follower` after each change of the store. Objects that exist are left to the caller."""
        self._followers = (*self._followers, follower)

    def replace_follower(self, follower: Follower[T], other: Follower[T]) -> None:
        self._followers = tuple(other if each == follower else each for each in self._followers)

    def remove_follower(self, follower: Follower[T]) -> None:
        self._followers = tuple(known for known in self._followers if known != follower)

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """Add an index for `by_index`. Adding the same index again has no effect."""
        self.store.add_index(name, function)

    async def find_live(self, key: ObjectKey) -> T | None:
        """The object on the server, for decisions that an outdated one would make wrong."""
        return await self._client.find_listed(self.resource, key)

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
        await cancel_and_wait(task, self._retrying)

    async def run(self) -> None:
        """List and watch until cancelled."""
        await self._feed.run()

    # --- the store, as the reflector writes it ---

    def keys(self) -> Iterable[ObjectKey]:
        return self.store.keys()

    def put(self, obj: T) -> None:
        """A successor of the same name is a deletion and an addition."""
        codec = self.resource.codec
        key = codec.key(obj)
        known = self.store.get(key)
        try:
            if known is None or codec.resource_version(known) != codec.resource_version(obj):
                if known is not None and codec.uid(known) != codec.uid(obj):
                    self.store.drop(key)
                    self._notify(key, known, None)
                self._notify(key, self.store.put(key, obj), obj)
        except Exception:  # noqa: BLE001 - logged by `_skip`
            self._skip(key, obj)
        else:
            if self._skipped:
                self._skipped.pop(key, None)

    def follow(self, key: ObjectKey, old: T | None, new: T | None) -> None:
        """The other informer may have known an `old` object that this one has skipped."""
        if new is None:
            self.drop(key, old)
            return
        try:
            old = self.store.put(key, new)
        except Exception:  # noqa: BLE001 - logged by `_skip`
            self._skip(key, new)
        else:
            if self._skipped:
                self._skipped.pop(key, None)
            self._notify(key, old, new)

    def _skip(self, key: ObjectKey, obj: T) -> None:
        log.exception("%s %s: an index function failed; skipped, retrying", self.resource, key)
        self._skipped[key] = obj
        if self._retrying is None:
            self._retrying = asyncio.create_task(self._retry_skipped())

    def drop(self, key: ObjectKey, last: T | None = None) -> None:
        if self._skipped:
            self._skipped.pop(key, None)
        old = self.store.drop(key)
        if old is not None:
            self._notify(key, old if last is None else last, None)

    async def _retry_skipped(self) -> None:
        """Retry objects for which an index function failed. Other objects are not delayed."""
        attempt = 0
        try:
            while self._skipped:
                attempt += 1
                await self._clock.sleep(SKIPPED_BACKOFF.seconds(attempt, self._chance()))
                async for obj in with_pauses(tuple(self._skipped.values()), EVENTS_AT_ONCE):
                    if self._skipped.get(self.resource.codec.key(obj)) is obj:
                        self.put(obj)
        finally:
            self._retrying = None

    def _notify(self, key: ObjectKey, old: T | None, new: T | None) -> None:
        """Call followers and event handlers: for an addition without `old`, for a deletion without `new`."""
        if self._needed_by and len(self.store) < 2:  # it was empty, or is now
            self._emptiness_changed()
        for follower in self._followers:
            follower(key, old, new)
        # One loop for each kind of change: handlers are many, and most calls of them are short.
        if old is None:
            assert new is not None
            for on_add in self._on_add:
                try:
                    on_add(new)
                except Exception:  # noqa: BLE001 - logged
                    self._report_failed_handler(key)
        elif new is None:
            for on_delete in self._on_delete:
                try:
                    on_delete(old)
                except Exception:  # noqa: BLE001 - logged
                    self._report_failed_handler(key)
        else:
            for on_update in self._on_update:
                try:
                    on_update(old, new)
                except Exception:  # noqa: BLE001 - logged
                    self._report_failed_handler(key)

    def _report_failed_handler(self, key: ObjectKey) -> None:
        log.exception("%s %s: an event handler failed", self.resource, key)

    def _replay(self, on_add: Callable[[T], None]) -> None:
        for key in tuple(self.store.keys()):
            if (obj := self.store.get(key)) is not None:
                try:
                    on_add(obj)
                except Exception:  # noqa: BLE001 - logged
                    self._report_failed_handler(key)


list_ = list


class Companion(Protocol):
    """A shared service that starts and stops with the informers."""

    def start(self) -> None: ...

    async def stop(self) -> None: ...


C = TypeVar("C", bound=Companion)


class Sources(Protocol):
    """The shared informers of a process (`shared_informers`)."""

    def source(
        self,
        resource: Resource[T],
        scope: Scope = EVERYTHING,
        ignored: IgnoredUpdate | None = None,
    ) -> InformerSource[T] | None:
        """Where an informer gets its objects; None if from the API server. Updates that are ignored are left out."""


class InformerFactory:
    """Shares informers: one per resource and scope (client-go's SharedInformerFactory)."""

    def __init__(
        self, client: Client, *, streaming: bool = True, sources: Sources | None = None
    ) -> None:
        """`sources` are informers that other components of this process use as well."""
        self.client = client
        self._streaming = streaming
        self._sources = sources
        self._informers: dict[tuple[Resource[object], Scope], Informer[object]] = {}
        self._unsynced: list[Informer[Any]] = []
        """Informers that had not synced when that was last asked."""
        self._companions: dict[Callable[[InformerFactory], Companion], Companion] = {}

    def informer(self, resource: Resource[T], scope: Scope = EVERYTHING) -> Informer[T]:
        """The informer of this resource; it runs after `start`."""
        found = self._informers.get((resource, scope))  # type: ignore[arg-type]
        if found is None:
            made = self.new_informer(resource, scope)
            self._informers[resource, scope] = made  # type: ignore[index, assignment]
            self._unsynced.append(made)
            return made
        return found  # type: ignore[return-value]

    def new_informer(
        self,
        resource: Resource[T],
        scope: Scope = EVERYTHING,
        ignored: IgnoredUpdate | None = None,
    ) -> Informer[T]:
        """An informer that the caller starts and stops.

        If it gets its objects from another one, updates that are ignored may be missing from it.
        """
        source = None
        if self._sources is not None:
            source = self._sources.source(resource, scope, ignored)
        return Informer(self.client, resource, scope, streaming=self._streaming, source=source)

    def companion(self, make: Callable[[InformerFactory], C]) -> C:
        """The result of `make`, created once and shared. It starts and stops with the informers."""
        found = self._companions.get(make)
        if found is None:
            found = self._companions[make] = make(self)
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
        # An informer that has synced stays so: the question is asked for every pod.
        while self._unsynced and self._unsynced[-1].has_synced:
            self._unsynced.pop()
        return not self._unsynced

    async def stop(self) -> None:
        running = (*self._informers.values(), *self._companions.values())
        await asyncio.gather(*(each.stop() for each in running))
