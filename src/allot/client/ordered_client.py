"""Requests that are sent together, each run only if the one before succeeded."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Mapping
from typing import Any

from allot.client.client import Client
from allot.client.rest_client import status_error
from allot.client.retries import NEVER
from allot.client.transport import JSON, ClusterTransport, Query, Response


class OrderedClient(Client):
    """A client for requests that are sent together. Each is added when its method is called, and is never retried."""

    def request(  # type: ignore[override]
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        *,
        headers: Mapping[str, str] | None = None,
        **_retries: object,
    ) -> Awaitable[Response]:
        sent = self.transport.request(method, path, query, body, content_type, headers)
        return _SuccessOf(sent)


class _SuccessOf:
    """The response to a request that was sent, awaited or not. Raises `ApiStatusError` unless it is a success."""

    __slots__ = ("_sent",)

    def __init__(self, sent: Awaitable[Response]) -> None:
        self._sent = sent

    def __await__(self) -> Generator[Any, Any, Response]:
        response = yield from self._sent.__await__()
        if 200 <= response.code < 300:
            return response
        raise status_error(response)


def in_order(client: Client, count: int) -> OrderedClient | None:
    """A client for `count` requests, sent together, each run only if the one before succeeded; None if the server cannot.

    Without retries: what is not run fails with the status code `NOT_RUN`. A client that has to keep to a rate limit
    sends its requests one by one.
    """
    transport = client.transport
    if client.is_limited or not isinstance(transport, ClusterTransport):
        return None
    ordered = transport.in_order(count)
    return None if ordered is None else OrderedClient(ordered, retry=NEVER, clock=client.clock)
