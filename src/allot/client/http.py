"""HTTP to any Kubernetes API server.

Credentials are refreshed once a minute by their source; after a 401 they are loaded again and the request is sent once
more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from allot.client.errors import ConfigError, TransportError
from allot.client.http_connecting import (
    ConnectError,
    Server,
    open_connection,
    proxy_authorization,
)
from allot.client.http_connection import ConnectionLostError, HttpConnection
from allot.client.http_pool import ConnectionPool
from allot.client.kubeconfig import AccessSource, ClusterAccess
from allot.client.transport import JSON, Query, Response, Stream

log = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 60.0
_REPEATABLE: Final = frozenset({"GET", "PUT", "DELETE"})
"""Sent again if a connection that was used before turns out to be closed."""
_ACCEPTED: Final = {"Accept": JSON, "Accept-Encoding": "gzip"}
_UNCOMPRESSED: Final = {"Accept-Encoding": "identity"}
"""Of streams: kube-apiserver keeps events of a compressed watch back until it has enough to compress."""


class ConnectionLimits(NamedTuple):
    """The number of connections, and timeouts."""

    connections: int = 100
    """Without those of watches, which have one each."""
    connect_seconds: float = 10.0
    answer_seconds: float = 60.0


class HttpTransport:
    """Connections to one API server. They are opened with the first request."""

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
        self._server: Server | None = None
        self._connections: ConnectionPool | None = None
        self._streams: ConnectionPool | None = None
        self._head = b""
        """The headers of all requests."""
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
        await self._current_access()
        assert self._connections is not None
        given = dict(headers or {})
        if body is not None:
            given |= {"Content-Type": content_type, "Content-Length": str(len(body))}
        elif method not in ("GET", "DELETE"):
            given["Content-Length"] = "0"
        head = self._request_head(method, path, query, given)
        try:
            async with asyncio.timeout(self._limits.answer_seconds):
                return await self._exchange(self._connections, method, head, body)
        except ConnectionLostError as error:
            raise self._lost(str(error)) from error
        except TimeoutError as error:
            raise self._lost(f"no response within {self._limits.answer_seconds:g} s") from error

    async def _exchange(
        self, pool: ConnectionPool, method: str, head: bytes, body: bytes | None
    ) -> Response:
        connection = await pool.acquire()
        try:
            code, headers = await connection.send(head, body)
            return Response(code, headers, await connection.read())
        except ConnectionLostError as error:
            if not error.is_stale or method not in _REPEATABLE:
                raise
        finally:
            pool.release(connection)
        connection = await pool.acquire(new=True)
        try:
            code, headers = await connection.send(head, body)
            return Response(code, headers, await connection.read())
        finally:
            pool.release(connection)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        idle_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Stream]:
        await self._current_access()
        pool = self._streams
        assert pool is not None
        head = self._request_head("GET", path, query, _UNCOMPRESSED | dict(headers or {}))
        connection = await pool.acquire(new=True)
        try:
            try:
                async with asyncio.timeout(idle_seconds):
                    code, found = await connection.send(head, None, streams=True)
            except ConnectionLostError as error:
                raise self._lost(str(error)) from error
            except TimeoutError as error:
                raise self._lost(f"no data for {idle_seconds:g} s") from error
            if code == 401:
                await self._renew()
            yield Stream(code, found, self._chunks(connection, idle_seconds))
        finally:
            connection.abort()
            pool.release(connection)

    async def _chunks(
        self, connection: HttpConnection, idle_seconds: float | None
    ) -> AsyncIterator[bytes]:
        try:
            while True:
                async with asyncio.timeout(idle_seconds):
                    chunk = await connection.read_chunk()
                if not chunk:
                    return
                yield chunk
        except ConnectionLostError as error:
            raise self._lost(str(error)) from error
        except TimeoutError as error:
            raise self._lost(f"no data for {idle_seconds:g} s") from error

    async def close(self) -> None:
        pools = (self._connections, self._streams)
        self._connections = self._streams = self._access = None
        for pool in pools:
            if pool is not None:
                pool.abort()

    def _lost(self, reason: str, *, was_sent: bool = True) -> TransportError:
        assert self._server is not None
        host, port = self._server.address
        return TransportError(f"{host}:{port}: {reason}", was_sent=was_sent)

    # --- access ---

    @property
    def root_certificates(self) -> str:
        """PEM that the server is verified with; empty before the first request or for the machine's own."""
        return self._access.root_certificates if self._access is not None else ""

    async def _current_access(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._access is not None and now - self._refreshed_at < REFRESH_SECONDS:
            return
        async with self._changing:
            if self._access is None:
                await self._use(await asyncio.to_thread(self._source.load))
            elif now - self._refreshed_at >= REFRESH_SECONDS:
                await self._change(self._source.refresh, self._access)
            self._refreshed_at = now

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
        if self._connections is None or not _connects_alike(self._access, access):
            await self._open(access)
        self._access = access
        self._head = _common_headers(access, self._server, self._user_agent)

    async def _open(self, access: ClusterAccess) -> None:
        context = await asyncio.to_thread(access.ssl_context)
        proxy = urlsplit(access.proxy) if access.proxy else None
        self._server = Server(urlsplit(access.server), context, access.tls_server_name, proxy)
        old = (self._connections, self._streams)
        self._connections = ConnectionPool(self._connect, self._limits.connections)
        self._streams = ConnectionPool(self._connect, 0)
        for pool in old:
            if pool is not None:
                pool.close()

    async def _connect(self) -> HttpConnection:
        assert self._server is not None
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                return await open_connection(self._server)
        except ConnectError as error:
            raise self._lost(str(error), was_sent=False) from error
        except TimeoutError as error:
            limit = self._limits.connect_seconds
            raise self._lost(f"no connection within {limit:g} s", was_sent=False) from error

    def _request_head(
        self, method: str, path: str, query: Query | None, headers: Mapping[str, str]
    ) -> bytes:
        assert self._server is not None
        target = f"{self._server.target_prefix}{path}"
        if query:
            target = f"{target}?{urlencode(query)}"
        if not target.isprintable() or " " in target:
            raise ConfigError(f"{target!r} cannot be requested: it is not escaped")
        lines = "".join(
            _header_line(name, value) for name, value in (_ACCEPTED | dict(headers)).items()
        )
        return f"{method} {target} HTTP/1.1\r\n{lines}".encode() + self._head


def _connects_alike(known: ClusterAccess | None, access: ClusterAccess) -> bool:
    """Whether open connections can be reused: only headers differ."""
    return (
        known is not None
        and known._replace(authorization=access.authorization, impersonation=access.impersonation)
        == access
    )


def _common_headers(access: ClusterAccess, server: Server | None, user_agent: str) -> bytes:
    assert server is not None
    headers = [
        ("Host", server.authority),
        ("User-Agent", user_agent),
        *access.impersonation,
    ]
    if access.authorization:
        headers.append(("Authorization", access.authorization))
    if server.proxy is not None and server.tls is None:
        authorization = proxy_authorization(server.proxy)
        headers += [("Proxy-Authorization", authorization)] if authorization else []
    lines = (_header_line(name, value) for name, value in headers)
    return "".join([*lines, "\r\n"]).encode()


def _header_line(name: str, value: str) -> str:
    if not value.isprintable():
        raise ConfigError(f"the value of header {name} has characters that cannot be sent")
    return f"{name}: {value}\r\n"
