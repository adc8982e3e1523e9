"""Requests to an API server: rate limit, retries, errors as exceptions (client-go's RESTClient).

The typed verbs are in `client`; `retries` decides whether a request is sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from allot.client.clock import Clock, LoopClock
from allot.client.errors import ApiStatusError, ClientError, TransportError
from allot.client.rate_limits import UNLIMITED, RequestLimit
from allot.client.retries import PERSISTENT, RetryPolicy
from allot.client.transport import JSON, Query, Response, Transport


class RestClient:
    """Sends requests of any kind to one API server. Safe to share between tasks."""

    def __init__(
        self,
        transport: Transport,
        *,
        retry: RetryPolicy = PERSISTENT,
        limit: RequestLimit | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.transport = transport
        self.clock: Clock = clock or LoopClock()
        self._retry = retry
        self._limit = limit or UNLIMITED
        self.is_limited = not self._limit.is_off

    async def close(self) -> None:
        await self.transport.close()

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        *,
        may_repeat: bool = False,
        before_repeat: Callable[[ClientError], None] | None = None,
        retry: RetryPolicy | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """The response to any request. Raises `ApiStatusError` unless it is a success."""
        policy = retry or self._retry
        attempt = 0
        while True:
            attempt += 1
            error: ClientError
            if self.is_limited:
                await self._wait_for_rate_limit()
            try:
                response = await self.transport.request(
                    method, path, query, body, content_type, headers
                )
                if 200 <= response.code < 300:
                    return response
                error = status_error(response)
            except TransportError as lost:
                error = lost
            pause = policy.wait_seconds(error, attempt, may_repeat=may_repeat)
            if pause is None:
                raise error
            if before_repeat is not None:
                before_repeat(error)
            await self.clock.sleep(pause)

    async def _wait_for_rate_limit(self) -> None:
        wait = self._limit.reserve(self.clock.now())
        if wait > 0:
            await self.clock.sleep(wait)


def status_error(response: Response) -> ApiStatusError:
    """The error of a response that is not a success."""
    return ApiStatusError.from_body(response.code, response.body, _retry_after(response))


def _retry_after(response: Response) -> float | None:
    """Retry-After in seconds. Dates, which some proxies send, are ignored."""
    value = response.header(b"retry-after")
    return float(value) if value is not None and value.isdigit() else None
