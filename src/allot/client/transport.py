"""The interface of transports: bytes to and from one API server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlencode

from msgspec import Struct

JSON: Final = "application/json"
WITH_STATUS: Final = "allot-with-status"
"""The header of an update that replaces the status as well, as a second update would. Kubernetes does not know it."""

WITHOUT_OBJECT: Final = "allot-without-object"
"""The header of a write whose client does not read the stored object: a success has no body. For components of the cluster."""

UNLESS_CHANGED: Final = "unless-changed"
"""A value of that header: an update whose object is stored as it was sent is answered with its new version alone."""

STORED_VERSION: Final = b"allot-stored-version"
"""The header of that answer: the resourceVersion of the object."""

NOT_RUN: Final = 424
"""The status code of a request that was not run because the one before it failed."""

Query = Mapping[str, str]

QUERIES_KEPT: Final = 128


class Response(Struct, frozen=True):
    """A response. Header names may be in any case."""

    code: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        """The first value of a header; `name` is in lower case."""
        for found, value in self.headers:
            if found.lower() == name:
                return value
        return None


class Stream(NamedTuple):
    """A streaming response, in chunks of any size."""

    code: int
    headers: Sequence[tuple[bytes, bytes]]
    chunks: AsyncIterator[bytes]


class Transport(Protocol):
    """Requests to one API server. Raises `TransportError` without a response."""

    def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Awaitable[Response]:
        """`path` is escaped already, `query` is not. `headers` replace those that are always sent."""
        ...

    def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        idle_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AbstractAsyncContextManager[Stream]:
        """A GET with a streaming response; closed when the context exits.

        The connection counts as lost after `idle_seconds` without data.
        """
        ...

    async def close(self) -> None: ...


class ClusterTransport:
    """The base of transports to the API server of the same cluster, which is one of ours."""

    def in_order(self, count: int) -> Transport | None:
        """A transport for the next `count` requests, which the server runs one after the other; None if it cannot.

        They are sent together, when the last one is requested, before any response is awaited. After one that fails,
        the others are not run: they get `NOT_RUN`.
        """
        return None


def encoded_query(query: Query | None) -> str:
    """The part of a URL after the question mark. Clients repeat the few that they have."""
    return _encoded_query(tuple(query.items())) if query else ""


_encoded_query = lru_cache(QUERIES_KEPT)(urlencode)
