"""HTTP to any Kubernetes API server.

Credentials are refreshed once a minute by their source; after a 401 they are loaded again and the request is sent once
more.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from allot.client.errors import ConfigError, TransportError
from allot.client.kubeconfig import AccessSource, ClusterAccess
from allot.client.transport import JSON, Query, Response, Stream

log = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 60.0
LARGE: Final = 1024 * 1024
"""Larger bodies are sent in chunks, so that the event loop is not blocked."""
CHUNK: Final = 256 * 1024
_NOT_SENT: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_LOST: Final = (aiohttp.ClientError, OSError, TimeoutError)


class ConnectionLimits(NamedTuple):
    """The number of connections, and timeouts."""

    connections: int = 100
    """Without those of watches, which have one each."""
    connect_seconds: float = 10.0
    answer_seconds: float = 60.0


class HttpTransport:
    """Connections to one API server. The session is opened with the first request."""

    def __init__(
        self,
        source: AccessSource,
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - a value
        user_agent: str = "allot",
    ) -> None:
        self._source = source
        self._limits = limits
        self._user_agent = user_agent
        self._access: ClusterAccess | None = None
        self._session: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None
        self._options: dict[str, Any] = {}
        self._refreshed_at = 0.0
        self._changing = asyncio.Lock()

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        response = await self._send(method, path, query, body, content_type, headers)
        if response.code == 401 and await self._renew():
            response = await self._send(method, path, query, body, content_type, headers)
        return response

    async def _send(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: bytes | None,
        content_type: str,
        headers: Mapping[str, str] | None,
    ) -> Response:
        access = await self._current_access()
        assert self._session is not None
        given = self._headers(access, headers)
        if body is not None:
            given.append(("Content-Type", content_type))
        url = _url(access, path, query)
        data = io.BytesIO(body) if body is not None and len(body) > LARGE else body
        try:
            async with self._session.request(
                method, url, data=data, headers=given, **self._options
            ) as response:
                content = await response.read()
                return Response(response.status, response.raw_headers, content)
        except _LOST as error:
            raise _lost(error, url) from error

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        idle_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Stream]:
        access = await self._current_access()
        assert self._streams is not None
        url = _url(access, path, query)
        timeout = aiohttp.ClientTimeout(
            sock_connect=self._limits.connect_seconds, sock_read=idle_seconds
        )
        try:
            response = await self._streams.get(
                url, headers=self._headers(access, headers), timeout=timeout, **self._options
            )
        except _LOST as error:
            raise _lost(error, url) from error
        try:
            if response.status == 401:
                await self._renew()
            yield Stream(response.status, response.raw_headers, _chunks(response, url))
        finally:
            response.close()

    async def close(self) -> None:
        sessions = (self._session, self._streams)
        self._session = self._streams = self._access = None
        for session in sessions:
            if session is not None:
                await session.close()

    # --- access ---

    @property
    def root_certificates(self) -> str:
        """PEM that the server is verified with; empty before the first request or for the machine's own."""
        return self._access.root_certificates if self._access is not None else ""

    async def _current_access(self) -> ClusterAccess:
        now = asyncio.get_running_loop().time()
        if self._access is not None and now - self._refreshed_at < REFRESH_SECONDS:
            return self._access
        async with self._changing:
            if self._access is None:
                await self._use(await asyncio.to_thread(self._source.load))
            elif now - self._refreshed_at >= REFRESH_SECONDS:
                await self._change(self._source.refresh, self._access)
            self._refreshed_at = now
            assert self._access is not None
            return self._access

    async def _renew(self) -> bool:
        """Load the credentials again; whether they changed."""
        refused = self._access
        async with self._changing:
            if self._access is refused:
                await self._change(self._source.load)
            return self._access != refused

    async def _change(self, read: Callable[..., ClusterAccess], *args: ClusterAccess) -> None:
        """Keep the current credentials on errors: files may be incomplete while they are written."""
        try:
            await self._use(await asyncio.to_thread(read, *args))
        except (ConfigError, OSError) as error:
            log.warning("credentials not refreshed: %s", error)

    async def _use(self, access: ClusterAccess) -> None:
        if self._session is None or not _connects_alike(self._access, access):
            await self._open(access)
        self._access = access

    async def _open(self, access: ClusterAccess) -> None:
        context = await asyncio.to_thread(access.ssl_context)
        old = (self._session, self._streams)
        limits = self._limits
        timeout = aiohttp.ClientTimeout(
            total=limits.answer_seconds, sock_connect=limits.connect_seconds
        )
        self._session = self._new_session(limits.connections, timeout)
        self._streams = self._new_session(0, timeout)
        self._options = {"ssl": context if context is not None else True}
        if access.tls_server_name:
            self._options["server_hostname"] = access.tls_server_name
        if access.proxy:
            self._options["proxy"] = access.proxy
        for session in old:
            if session is not None:
                # Requests in flight finish, or are retried in the new session.
                await session.close()

    def _new_session(
        self, connections: int, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections, socket_factory=_lively_socket),
            timeout=timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=CHUNK,
        )

    def _headers(
        self, access: ClusterAccess, given: Mapping[str, str] | None
    ) -> list[tuple[str, str]]:
        headers = [
            *({"Accept": JSON} | dict(given or {})).items(),
            ("Accept-Encoding", "gzip"),
            ("User-Agent", self._user_agent),
            *access.impersonation,
        ]
        if access.authorization:
            headers.append(("Authorization", access.authorization))
        return headers


def _connects_alike(known: ClusterAccess | None, access: ClusterAccess) -> bool:
    """Whether open connections can be reused: only headers differ."""
    return (
        known is not None
        and known._replace(authorization=access.authorization, impersonation=access.impersonation)
        == access
    )


def _url(access: ClusterAccess, path: str, query: Query | None) -> URL:
    text = f"{access.server}{path}"
    return URL(f"{text}?{urlencode(query)}" if query else text, encoded=True)


def _lost(error: Exception, url: URL) -> TransportError:
    was_sent = not isinstance(error, _NOT_SENT)
    return TransportError(f"{url.host}:{url.port}: {_reason(error)}", was_sent=was_sent)


def _reason(error: Exception) -> str:
    """The cause, without aiohttp's representation of the connection."""
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error is not None:
        failure = error.os_error
        if failure.strerror and "Connect call failed" not in failure.strerror:
            return failure.strerror
        return os.strerror(failure.errno) if failure.errno else "cannot connect"
    return str(error) or type(error).__name__


async def _chunks(response: aiohttp.ClientResponse, url: URL) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except _LOST as error:
        raise _lost(error, url) from error


def _lively_socket(address: Any) -> socket.socket:
    """A socket with keepalive, which detects a dead peer within about a minute."""
    family, type_, protocol, _, _ = address
    made = socket.socket(family, type_, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        option = getattr(socket, name, None)
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
