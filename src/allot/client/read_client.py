"""The reading verbs of the client: get, list and watch, in JSON or protobuf.

Reads are idempotent, so they are retried when their outcome is unknown; watches are the task of informers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from allot.api.identities import ObjectKey
from allot.client.clock import Clock
from allot.client.codecs import ListPage, Unreadable
from allot.client.errors import ApiStatusError
from allot.client.large_pages import decode_page_with_pauses
from allot.client.options import EVERYTHING, Scope
from allot.client.protobuf import ACCEPT, PROTOBUF, is_protobuf
from allot.client.rate_limits import RequestLimit
from allot.client.resources import Resource
from allot.client.rest_client import RestClient, status_error
from allot.client.retries import PERSISTENT, RetryPolicy
from allot.client.transport import Response, Transport
from allot.client.watch_stream import Events, decoded_events, decoded_frames

PAGE_SIZE: Final = 500

T = TypeVar("T")


class ReadClient(RestClient):
    """Reads objects of one API server. Safe to share between tasks."""

    def __init__(
        self,
        transport: Transport,
        *,
        retry: RetryPolicy = PERSISTENT,
        limit: RequestLimit | None = None,
        clock: Clock | None = None,
        prefers_protobuf: bool = False,
    ) -> None:
        """With `prefers_protobuf`, resources that have a protobuf codec are read and written in it.

        Servers in the same process keep opaque parameters as they are also in JSON, which is faster.
        """
        super().__init__(transport, retry=retry, limit=limit, clock=clock)
        self._prefers_protobuf = prefers_protobuf

    async def get(self, resource: Resource[T], key: ObjectKey) -> T:
        response = await self.request(
            "GET",
            resource.path(key),
            may_repeat=True,
            headers=self._accept(resource) or resource.form.headers,
        )
        return decoded(resource, response)

    async def find(self, resource: Resource[T], key: ObjectKey) -> T | None:
        """`get`, with None if the object does not exist."""
        try:
            return await self.get(resource, key)
        except ApiStatusError as error:
            if error.is_not_found:
                return None
            raise

    async def find_listed(self, resource: Resource[T], key: ObjectKey) -> T | None:
        """`find` for users who may list objects but not get them: the roles of many controllers say so."""
        scope = Scope(key.namespace, field_selector=f"metadata.name={key.name}")
        found = (await self.list(resource, scope)).items
        return found[0] if found else None

    async def list(
        self,
        resource: Resource[T],
        scope: Scope = EVERYTHING,
        *,
        resource_version: str = "",
        match: str = "",
        page_size: int = PAGE_SIZE,
        lenient: bool = False,
    ) -> ListPage[T]:
        """All pages as one. If the continue token expires, the list is requested again without pages,
        unless an exact version is asked for.

        A lenient list skips objects that cannot be decoded, and reports them.
        """
        items: list[T] = []
        unreadable: tuple[Unreadable, ...] = ()
        continue_ = ""
        while True:
            try:
                page = await self.list_page(
                    resource,
                    scope,
                    resource_version=resource_version if not continue_ else "",
                    match=match if not continue_ else "",
                    limit=page_size,
                    continue_=continue_,
                    lenient=lenient,
                )
            except ApiStatusError as error:
                if not (error.is_expired and continue_) or match:
                    raise
                return await self.list_page(resource, scope, lenient=lenient)
            if not items and not page.continue_:
                return page._replace(unreadable=unreadable + page.unreadable)
            items += page.items
            unreadable += page.unreadable
            if not page.continue_:
                return ListPage(items, page.resource_version, unreadable=unreadable)
            continue_ = page.continue_

    async def list_page(
        self,
        resource: Resource[T],
        scope: Scope = EVERYTHING,
        *,
        resource_version: str = "",
        match: str = "",
        limit: int = 0,
        continue_: str = "",
        lenient: bool = False,
    ) -> ListPage[T]:
        query = scope.query()
        if resource_version:
            query["resourceVersion"] = resource_version
        if match:
            query["resourceVersionMatch"] = match
        if limit:
            query["limit"] = str(limit)
        if continue_:
            query["continue"] = continue_
        path = resource.collection_path(scope.namespace)
        headers = self._accept(resource) or resource.form.list_headers
        response = await self.request("GET", path, query, may_repeat=True, headers=headers)
        if resource.protobuf is not None and is_protobuf(response.body):
            return resource.protobuf.decode_page(response.body, lenient=lenient)
        return await decode_page_with_pauses(resource.codec, response.body, lenient=lenient)

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource[T],
        scope: Scope = EVERYTHING,
        *,
        resource_version: str = "",
        initial_events: bool = False,
        timeout_seconds: int = 300,
        managed_fields: bool = True,
    ) -> AsyncIterator[AsyncIterator[Events[T]]]:
        """Batches of events, until the server ends the watch. Not retried: that is the task of informers.

        With `initial_events` existing objects are sent first, up to a bookmark. Without `managed_fields` these are
        removed from objects.
        """
        query = scope.query() | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(timeout_seconds),
        }
        if resource_version:
            query["resourceVersion"] = resource_version
        if initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        if self.is_limited:
            await self._wait_for_rate_limit()
        path = resource.collection_path(scope.namespace)
        # The server ends a watch after the timeout; otherwise the connection is dead.
        idle_seconds = timeout_seconds + 30.0
        async with self.transport.stream(
            path,
            query,
            idle_seconds=idle_seconds,
            headers=self._accept(resource) or resource.form.headers,
        ) as stream:
            head = Response(stream.code, stream.headers, b"")
            if stream.code != 200:
                body = b"".join([chunk async for chunk in stream.chunks])
                raise status_error(Response(stream.code, stream.headers, body))
            shown_in = head.header(b"content-type") or b""
            if resource.protobuf is not None and shown_in.startswith(PROTOBUF.encode()):
                codec = resource.protobuf
                yield decoded_frames(stream.chunks, codec, managed_fields=managed_fields)
            else:
                yield decoded_events(stream.chunks, resource.codec, managed_fields=managed_fields)

    def _accept(self, resource: Resource[Any]) -> Mapping[str, str] | None:
        """Headers that ask for protobuf where that is preferred."""
        return ACCEPT if self._prefers_protobuf and resource.protobuf is not None else None


def decoded(resource: Resource[T], response: Response) -> T:
    """The object of a response, in the encoding that the server chose."""
    if resource.protobuf is not None and is_protobuf(response.body):
        return resource.protobuf.decode(response.body)
    return resource.codec.decode(response.body)
