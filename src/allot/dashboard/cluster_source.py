"""Where the dashboard gets its objects: from an API server, kept up to date by informers, or from files.

If the API server keeps its history, that is told first.

Only lists and watches are requested. Resources that the user may not list are left out, with a note.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client import resources
from allot.client.client import Client, without_retries
from allot.client.errors import ApiStatusError, ClientError
from allot.client.options import Scope
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.dashboard.server_history import read_past
from allot.questions.live_cluster import ChangeHandler, LiveCluster
from allot.questions.object_states import event_subject
from allot.questions.observed_cluster import KINDS, ObservedCluster

SYNC_SECONDS: Final = 60.0
PING_SECONDS: Final = 5.0
OBJECTS_AT_ONCE: Final = 500
"""Objects that handlers are called for before other tasks get a turn."""


class ClusterSource(ABC):
    """The objects of a cluster, the handlers of their changes, and whether they are up to date."""

    def __init__(self, title: str, cluster: ObservedCluster, namespace: str = "") -> None:
        """`cluster` has gates, rules and the scheduler's configuration. `namespace` is that of names without one."""
        self.title = title
        self.namespace = namespace or "default"
        self.objects: Snapshot = cluster.objects
        self.gates = cluster.gates
        self.problem = ""
        """Why the objects may be outdated; empty if they are not."""
        self.on_moment: Callable[[], Awaitable[None]] = _nothing_to_do
        """Called when a source that tells the past has told all changes of one moment."""
        self._cluster = cluster
        self._handlers: list[ChangeHandler] = []

    def clock(self) -> float:
        """The present, in seconds since the epoch."""
        return time.time()

    def add_handler(self, handler: ChangeHandler) -> None:
        self._handlers.append(handler)

    def observed(self) -> ObservedCluster:
        """The cluster as it is now, for questions; `UnreadableError` if what decides all answers is hidden."""
        now = datetime.fromtimestamp(int(self.clock()), UTC)
        return replace(self._cluster, objects=self.objects.copy(), now=now).checked()

    @property
    def notes(self) -> tuple[str, ...]:
        """What answers assume, and what could not be read."""
        return replace(self._cluster, objects=self.objects).with_notes_on_unread().notes

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

    async def _deliver_all(self, objects: Snapshot) -> None:
        """Call the handlers for all objects; other tasks run in between."""
        for resource in KINDS:
            known = objects.of(resource)
            for first in range(0, len(known), OBJECTS_AT_ONCE):
                for obj in known[first : first + OBJECTS_AT_ONCE]:
                    self._changed(resource, None, obj)
                await asyncio.sleep(0)

    def _changed(self, resource: Resource[Any], old: Any, new: Any) -> None:
        for handler in self._handlers:
            handler(resource, old, new)


class FixedCluster(ClusterSource):
    """Objects that do not change: from files, a clone, or described hardware."""

    def clock(self) -> float:
        return self._cluster.now.timestamp()

    async def start(self) -> None:
        await self._deliver_all(self.objects)

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


class LiveSource(ClusterSource):
    """The objects of an API server, kept up to date."""

    def __init__(
        self, title: str, cluster: ObservedCluster, client: Client, namespace: str = ""
    ) -> None:
        super().__init__(title, cluster, namespace)
        self._client = client
        self._live = LiveCluster(client, cluster, KINDS, self.namespace)
        self._live.add_handler(self._live_changed)
        self.objects = self._live.objects
        self._has_told_past = False
        self._past_time: float | None = None
        """The time of the past that is being told."""
        self._past: dict[tuple[Resource[Any], ObjectKey], Any] = {}
        """Objects that handlers know from the past, and that were not listed yet."""

    def clock(self) -> float:
        return super().clock() if self._past_time is None else self._past_time

    async def start(self) -> None:
        """Tell the past that the server keeps, then start informers and wait for their first lists.

        `ClientError` if the cluster does not answer.
        """
        if not self._has_told_past:
            self._has_told_past = True
            await self._replay_past()
        await self._live.start()
        async with asyncio.timeout(SYNC_SECONDS):
            await self._live.wait_synced()
        for (resource, _), obj in self._past.items():
            self._changed(resource, obj, None)  # deleted since
        self._past = {}

    async def _replay_past(self) -> None:
        past = await read_past(self._client, time.time())
        if past is None:
            return
        self._past_time = past.begins
        try:
            for resource, obj in past.objects:
                self._replay_past_change(resource, resource.codec.key(obj), obj)
            await self.on_moment()
            for at, changes in groupby(past.changes, key=lambda change: change.at):
                self._past_time = at
                for change in changes:
                    self._replay_past_change(change.resource, change.key, change.object)
                await self.on_moment()
        finally:
            self._past_time = None

    def _replay_past_change(self, resource: Resource[Any], key: ObjectKey, obj: Any) -> None:
        old = self._past.pop((resource, key), None)
        if obj is not None:
            self._past[resource, key] = obj
        if old is not None or obj is not None:
            self._changed(resource, old, obj)

    def _live_changed(self, resource: Resource[Any], old: Any, new: Any) -> None:
        if old is None and self._past:
            old = self._past.pop((resource, resource.codec.key(new)), None)
        self._changed(resource, old, new)

    async def stop(self) -> None:
        await self._live.stop()

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


async def _nothing_to_do() -> None:
    """No part waits for the end of a moment."""


def _is_about(event: RawObject, kind: str, namespace: str, name: str) -> bool:
    about = event_subject(event)
    return (about.get("kind"), about.get("namespace"), about.get("name")) == (kind, namespace, name)
