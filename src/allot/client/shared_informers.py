"""Informers that all components of one process share: one list and watch per resource, each object decoded once.

    API server ─ watch ─▶ informer of all pods ─┬─▶ informer of the controllers
                                                ├─▶ informer of the scheduler: pods that have not finished
                                                └─▶ informer of the garbage collector: metadata

A component still has an informer of its own, with its own event handlers and indexes, and starts and stops it alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.cooperative import with_pauses
from allot.client.informer import Follower, IgnoredUpdate, Informer, SharedStore
from allot.client.metadata import metadata_of
from allot.client.options import EVERYTHING, Scope
from allot.client.projection import METADATA, WHOLE
from allot.client.reflector import EVENTS_AT_ONCE
from allot.client.resources import PODS, Resource

T = TypeVar("T")

View = Callable[[Any], T | None]
"""What an informer shows of an object; None if the object is not in its scope."""

NEEDED_COMPLETELY: Final[frozenset[tuple[str, str]]] = frozenset({(PODS.group, PODS.plural)})
"""Resources of which some component needs all objects: informers of a part get theirs from that one."""


Readers = Mapping[tuple[str, ...], Callable[[Any], str]]
"""How fields are read that objects have at hand, by their path."""
NO_READERS: Final[Readers] = {}
POD_FIELDS: Final[Readers] = {("status", "phase"): attrgetter("phase")}


class SharedInformers:
    """One informer of all objects per resource. Started when first used."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._informers: dict[Resource[Any], Informer[Any]] = {}
        self._by_version: dict[tuple[str, str, str], Informer[Any]] = {}

    def source(
        self,
        resource: Resource[T],
        scope: Scope = EVERYTHING,
        ignored: IgnoredUpdate | None = None,
    ) -> SharedSource[T] | None:
        """Where an informer of a component gets its objects; None: from the API server, by itself."""
        if resource.form is METADATA:
            # Only where complete objects are watched anyway.
            known = self._by_version.get(_version(resource)) if scope == EVERYTHING else None
            if known is None:
                return None
            return SharedSource(known, cast("View[T]", metadata_of), ignored)
        if resource.form is not WHOLE:
            return None
        view: View[T] | None = _everything
        if scope != EVERYTHING:
            is_needed = (resource.group, resource.plural) in NEEDED_COMPLETELY
            readers = POD_FIELDS if resource.codec is PODS.codec else NO_READERS
            view = view_of(scope, readers) if is_needed else None
        return None if view is None else SharedSource(self._informer(resource), view, ignored)

    def _informer(self, resource: Resource[T]) -> Informer[T]:
        found = self._informers.get(resource)
        if found is None:
            found = self._informers[resource] = Informer(self._client, resource)
            self._by_version.setdefault(_version(resource), found)
        return found

    async def stop(self) -> None:
        await asyncio.gather(*(informer.stop() for informer in self._informers.values()))


class SharedSource(Generic[T]):
    """A shared informer, and what another informer shows of its objects."""

    def __init__(
        self, informer: Informer[Any], view: View[T], ignored: IgnoredUpdate | None = None
    ) -> None:
        self._informer = informer
        self._view = view
        self._ignored = ignored

    def feed(self, store: SharedStore[T]) -> SharedFeed[T]:
        return SharedFeed(self._informer, self._view, store, self._ignored)


class SharedFeed(Generic[T]):
    """Keeps a store in step with a shared informer, as a reflector does with the API server."""

    def __init__(
        self,
        source: Informer[Any],
        view: View[T],
        store: SharedStore[T],
        ignored: IgnoredUpdate | None = None,
    ) -> None:
        self._source = source
        self._view = view
        self._ignored = ignored
        self._store = store
        self.synced = asyncio.Event()

    @property
    def resource_version(self) -> str:
        return self._source.resource_version

    @property
    def lists(self) -> int:
        return self._source.lists

    @property
    def failure(self) -> Exception | None:
        return self._source.failure

    async def run(self) -> None:
        """Follow the shared informer until cancelled."""
        source = self._source
        source.add_follower(self._catch_up)
        following: Follower[Any] = self._catch_up
        try:
            source.start()
            async for key in with_pauses(tuple(source.keys()), EVENTS_AT_ONCE):
                if (obj := source.get(key)) is not None:
                    self._catch_up(key, None, obj)
            await self._drop_missing()
            # From now on each change is news.
            following = self._news()
            source.replace_follower(self._catch_up, following)
            await source.wait_synced()
            self.synced.set()
            await asyncio.Event().wait()
        finally:
            source.remove_follower(following)

    def _news(self) -> Follower[Any]:
        """What takes changes once the store has all objects of the source."""
        if self._ignored is not None:
            return self._follow_unless_ignored
        return self._store.follow if self._view is _everything else self._follow

    async def _drop_missing(self) -> None:
        """Drop what was deleted while this feed was not running."""
        known: tuple[ObjectKey, ...] = tuple(self._store.keys())
        async for key in with_pauses(known, EVENTS_AT_ONCE):
            if self._source.get(key) is None:
                self._store.drop(key)

    def _catch_up(self, key: ObjectKey, old: Any, new: Any) -> None:
        """The store may know this version already."""
        if new is None:
            self._store.drop(key, self._view(old))
        elif (shown := self._view(new)) is None:
            self._store.drop(key)
        else:
            self._store.put(shown)

    def _follow(self, key: ObjectKey, old: Any, new: Any) -> None:
        if new is None:
            self._store.drop(key, self._view(old))
        elif (shown := self._view(new)) is None:
            self._store.drop(key)
        else:
            self._store.follow(key, None, shown)

    def _follow_unless_ignored(self, key: ObjectKey, old: Any, new: Any) -> None:
        ignored: Any = self._ignored
        if old is None or new is None or not ignored(old, new):
            self._follow(key, old, new)


def view_of(scope: Scope, readers: Readers = NO_READERS) -> View[Any] | None:
    """The objects of a scope that can be decided by comparing fields; None for other scopes."""
    if scope.label_selector:
        return None
    namespace = scope.namespace
    values_by_path: dict[tuple[str, ...], list[tuple[str, bool]]] = {}
    for text in filter(None, scope.field_selector.split(",")):
        path, value, equals = _requirement(text)
        values_by_path.setdefault(path, []).append((value, equals))
    requirements = tuple(
        _Requirement(
            readers.get(path) or partial(_read, path),
            tuple(value for value, equals in values if equals),
            tuple(value for value, equals in values if not equals),
        )
        for path, values in values_by_path.items()
    )

    def view(obj: RawObject) -> RawObject | None:
        if namespace and obj.key.namespace != namespace:
            return None
        for read, wanted, refused in requirements:
            found = read(obj)
            if found in refused or (wanted and any(found != value for value in wanted)):
                return None
        return obj

    return view


class _Requirement(NamedTuple):
    """What a field must and must not be."""

    read: Callable[[Any], str]
    wanted: tuple[str, ...]
    refused: tuple[str, ...]


def _read(path: tuple[str, ...], obj: RawObject) -> str:
    value: str = obj.get(*path, default="")
    return value


def _requirement(text: str) -> tuple[tuple[str, ...], str, bool]:
    """The path, the value, and whether they must be equal."""
    path, _, value = text.partition("=")
    return tuple(path.rstrip("!").split(".")), value.lstrip("="), not path.endswith("!")


def _everything(obj: Any) -> Any:
    return obj


def _version(resource: Resource[Any]) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural
