"""Where the dashboard gets its objects: from an API server, kept up to date by informers, or from files.

Only lists and watches are requested. Resources that the user may not list are left out, with a note.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from allot.api.raw import RawObject
from allot.client import resources
from allot.client.client import Client, without_retries
from allot.client.discovery import readable_versions
from allot.client.errors import ApiStatusError, ClientError
from allot.client.informer import Informer
from allot.client.options import EVERYTHING, Scope
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.questions.observed_cluster import KINDS, ObservedCluster

Listener = Callable[[Resource[Any], Any, Any], None]
"""Called with a resource, the object before and the object after a change."""

SYNC_SECONDS: Final = 60.0
PING_SECONDS: Final = 5.0


class ClusterSource(ABC):
    """The objects of a cluster, the listeners of their changes, and whether they are up to date."""

    def __init__(self, title: str, cluster: ObservedCluster, namespace: str = "") -> None:
        """`cluster` has gates, rules and the scheduler's configuration. `namespace` is that of names without one."""
        self.title = title
        self.namespace = namespace or "default"
        self.objects: Snapshot = cluster.objects
        self.gates = cluster.gates
        self.problem = ""
        """Why the objects may be outdated; empty if they are not."""
        self.on_moment: Callable[[], None] = lambda: None
        """Called when a source that tells the past has told all changes of one moment."""
        self._cluster = cluster
        self._listeners: list[Listener] = []

    def clock(self) -> float:
        """The present, in seconds since the epoch."""
        return time.time()

    def add_listener(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def observed(self) -> ObservedCluster:
        """The cluster as it is now, for questions; `UnreadableError` if what decides all answers is hidden."""
        now = datetime.fromtimestamp(int(self.clock()), UTC)
        return replace(self._cluster, objects=self.objects.copy(), now=now).checked()

    @property
    def notes(self) -> tuple[str, ...]:
        """What answers assume, and what could not be read."""
        hidden = (
            f"{resource.plural} could not be read: {why}"
            for resource, why in self.objects.unread.items()
            if resource is not resources.DEVICE_TAINT_RULES
        )
        return (*self._cluster.notes, *hidden)

    @abstractmethod
    async def start(self) -> None:
        """Returns when all objects are known."""

    @abstractmethod
    async def stop(self) -> None: ...

    @abstractmethod
    async def ping(self) -> None:
        """Find out whether the cluster answers."""

    @abstractmethod
    async def events_about(self, kind: str, namespace: str, name: str) -> Sequence[RawObject]:
        """The events about an object; none if they may not be read."""

    def _changed(self, resource: Resource[Any], old: Any, new: Any) -> None:
        for listener in self._listeners:
            listener(resource, old, new)


class FixedCluster(ClusterSource):
    """Objects that do not change: from files, a clone, or described hardware."""

    def clock(self) -> float:
        return self._cluster.now.timestamp()

    async def start(self) -> None:
        for resource in KINDS:
            for obj in self.objects.of(resource):
                self._changed(resource, None, obj)

    async def stop(self) -> None:
        return

    async def ping(self) -> None:
        return

    async def events_about(self, kind: str, namespace: str, name: str) -> Sequence[RawObject]:
        return [
            event
            for event in self.objects.of(resources.EVENTS)
            if _is_about(event, kind, namespace, name)
        ]


class LiveCluster(ClusterSource):
    """The objects of an API server, kept up to date."""

    def __init__(
        self, title: str, cluster: ObservedCluster, client: Client, namespace: str = ""
    ) -> None:
        super().__init__(title, cluster, namespace)
        self._client = client
        self._informers: list[Informer[Any]] = []

    async def start(self) -> None:
        """Start informers and wait for their first lists; `ClientError` if the cluster does not answer."""
        readable = await asyncio.gather(*(self._readable(each) for each in KINDS))
        for resource, found in zip(KINDS, readable, strict=True):
            if found is None:
                continue
            version, scope = found
            informer = Informer(self._client, version, scope)
            informer.add_handlers(
                partial(self._put, resource, None),
                partial(self._put, resource),
                partial(self._remove, resource),
            )
            self._informers.append(informer)
            informer.start()
        async with asyncio.timeout(SYNC_SECONDS):
            for informer in self._informers:
                await informer.wait_synced()

    async def stop(self) -> None:
        await asyncio.gather(*(informer.stop() for informer in self._informers))
        await self._client.close()

    async def ping(self) -> None:
        try:
            async with asyncio.timeout(PING_SECONDS):
                await without_retries(self._client).request("GET", "/version", may_repeat=True)
        except ApiStatusError:
            self.problem = ""  # it answers
        except (ClientError, TimeoutError) as error:
            self.problem = f"the API server does not answer: {error or 'timeout'}"
        else:
            self.problem = ""

    async def events_about(self, kind: str, namespace: str, name: str) -> Sequence[RawObject]:
        scope = Scope(namespace, field_selector=f"regarding.name={name}")
        try:
            found: Iterable[RawObject] = (await self._client.list(resources.EVENTS, scope)).items
        except ClientError:
            return ()
        return [event for event in found if _is_about(event, kind, namespace, name)]

    async def _readable(self, resource: Resource[Any]) -> tuple[Resource[Any], Scope] | None:
        """The version and scope in which the user may list a resource; None, and a note, if in none."""
        refusal = "the server does not have them"
        for version in readable_versions(resource):
            asked = resource if version == resource.version else resource.in_version(version)
            try:
                await self._client.list_page(asked, EVERYTHING, limit=1, lenient=True)
            except ApiStatusError as error:
                if error.is_not_found:
                    continue
                if not error.is_forbidden:
                    raise
                self.objects.unread[resource] = str(error)
                return await self._readable_in_namespace(resource, asked, str(error))
            return asked, EVERYTHING
        self.objects.unread[resource] = refusal
        return None

    async def _readable_in_namespace(
        self, resource: Resource[Any], asked: Resource[Any], refusal: str
    ) -> tuple[Resource[Any], Scope] | None:
        if not resource.namespaced:
            return None
        scope = Scope(self.namespace)
        try:
            await self._client.list_page(asked, scope, limit=1, lenient=True)
        except ApiStatusError as error:
            if not error.is_forbidden:
                raise
            return None
        self.objects.unread[resource] = f"only those in namespace {self.namespace}: {refusal}"
        return asked, scope

    def _put(self, resource: Resource[Any], old: Any, new: Any) -> None:
        self.objects.put(resource, new)
        self._changed(resource, old, new)

    def _remove(self, resource: Resource[Any], old: Any) -> None:
        self.objects.remove(resource, resource.codec.key(old))
        self._changed(resource, old, None)


def _is_about(event: RawObject, kind: str, namespace: str, name: str) -> bool:
    about = event.get("regarding", default=None) or event.get("involvedObject", default=None) or {}
    return (about.get("kind"), about.get("namespace"), about.get("name")) == (kind, namespace, name)
