"""A cluster that is followed: informers for all that questions read, and the connection to the server.

Get, list and watch are the only verbs that are needed. Kinds that may not be listed are noted, and do not stop the
rest. While the server does not answer, the last known objects stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from allot.client.client import Client
from allot.client.discovery import readable_versions
from allot.client.errors import ApiStatusError, ClientError
from allot.client.informer import Informer
from allot.client.options import EVERYTHING, Scope
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.questions.observed_cluster import ObservedCluster

ChangeHandler = Callable[[Resource[Any], Any, Any], None]
"""Called with the resource, the object before, and the object now; None: it did not or does not exist."""


class _Readable(NamedTuple):
    """In which version and scope a resource can be read, and what cannot."""

    resource: Resource[Any] | None
    scope: Scope = EVERYTHING
    unread: str = ""


class LiveCluster:
    """Objects of a cluster, kept up to date by list and watch."""

    def __init__(
        self,
        client: Client,
        base: ObservedCluster,
        resources: Iterable[Resource[Any]],
        namespace: str = "",
    ) -> None:
        """`base` has feature gates, rules and configuration. `namespace` is read where all namespaces may not be."""
        self.revision = 0
        """Grows with every change."""
        self.objects = Snapshot()
        """All that is known now, and why some is missing; changes before handlers are called."""
        self.objects.server_version = base.objects.server_version
        self.objects.gates = base.objects.gates
        self._client = client
        self._base = base
        self._resources = tuple(resources)
        self._namespace = namespace
        self._informers: dict[Resource[Any], Informer[Any]] = {}
        self._handlers: tuple[ChangeHandler, ...] = ()
        self._start_failure: Exception | None = None
        self._has_started = False

    def add_handler(self, handler: ChangeHandler) -> None:
        """Called in the event loop for every change after `start`."""
        self._handlers = (*self._handlers, handler)

    async def start(self) -> None:
        """Find out what may be read, and start the informers; `ClientError` if the server does not answer."""
        try:
            found = await asyncio.gather(*map(self._readable, self._resources))
        except ClientError as error:
            self._start_failure = error
            raise
        self._start_failure = None
        for asked, (resource, scope, unread) in zip(self._resources, found, strict=True):
            if unread:
                self.objects.unread[asked] = unread
            if resource is not None:
                self._follow(asked, resource, scope)
        self._has_started = True
        self.revision += 1

    def _follow(self, asked: Resource[Any], resource: Resource[Any], scope: Scope) -> None:
        informer: Informer[Any] = Informer(self._client, resource, scope)
        informer.add_handlers(
            on_add=lambda new: self._changed(asked, None, new),
            on_update=lambda old, new: self._changed(asked, old, new),
            on_delete=lambda old: self._changed(asked, old, None),
        )
        self._informers[asked] = informer
        informer.start()

    def _changed(self, resource: Resource[Any], old: Any, new: Any) -> None:
        if new is None:
            self.objects.remove(resource, resource.codec.key(old))
        else:
            self.objects.put(resource, new)
        self.revision += 1
        for handler in self._handlers:
            handler(resource, old, new)

    async def _readable(self, resource: Resource[Any]) -> _Readable:
        try:
            return _Readable(await self._served(resource, EVERYTHING), unread="")
        except _NotServedError:
            return _Readable(None, unread="the server does not have them")
        except ApiStatusError as error:
            if not error.is_forbidden:
                raise
            why = str(error)
        if not resource.namespaced or not self._namespace:
            return _Readable(None, unread=why)
        scope = Scope(self._namespace)
        try:
            found = await self._served(resource, scope)
        except ApiStatusError as error:
            if not error.is_forbidden:
                raise
            return _Readable(None, unread=why)
        return _Readable(found, scope, f"only those in namespace {self._namespace}: {why}")

    async def _served(self, resource: Resource[Any], scope: Scope) -> Resource[Any]:
        """The resource in the best version that the server has."""
        for version in readable_versions(resource):
            asked = resource if version == resource.version else resource.in_version(version)
            try:
                await self._client.list_page(asked, scope, limit=1, lenient=True)
            except ApiStatusError as error:
                if not error.is_not_found:
                    raise
            else:
                return asked
        raise _NotServedError

    async def wait_synced(self) -> None:
        """Returns when everything that may be read was read once."""
        for informer in self._informers.values():
            await informer.wait_synced()

    async def stop(self) -> None:
        await asyncio.gather(*(each.stop() for each in self._informers.values()))
        await self._client.close()

    # --- what is known ---

    @property
    def has_synced(self) -> bool:
        """Whether everything that may be read was read once."""
        return self._has_started and all(each.has_synced for each in self._informers.values())

    @property
    def failure(self) -> str:
        """Why objects may be outdated; empty while all are followed."""
        failures = (each.failure for each in self._informers.values())
        error = self._start_failure or next(filter(None, failures), None)
        return "" if error is None else " ".join(str(error).split()) or type(error).__name__

    def observed(self, now: datetime) -> ObservedCluster:
        """The cluster as it is known now, with notes about what may not be read."""
        objects = self.objects.copy()
        return replace(self._base, objects=objects, now=now).with_notes_on_unread()


class _NotServedError(Exception):
    """No known version of the resource is served."""
