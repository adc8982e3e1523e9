"""Opens connections to a server: addresses, TLS, proxies."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import SplitResult, unquote

from allot.client.http_connection import HttpConnection

_KEEPALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
"""A dead peer is noticed within about a minute."""
_PORTS: Final = {"http": 80, "https": 443}
MAX_PROXY_HEAD: Final = 64 * 1024


P = TypeVar("P", HttpConnection, "_Tunnel")


class ConnectError(Exception):
    """There is no connection, so nothing was sent."""


class Server(NamedTuple):
    """What is connected to, and how."""

    url: SplitResult
    tls: ssl.SSLContext | None
    tls_server_name: str | None = None
    proxy: SplitResult | None = None

    @property
    def address(self) -> tuple[str, int]:
        return _address(self.url)

    @property
    def authority(self) -> str:
        """The value of the header Host."""
        return self.url.netloc.rpartition("@")[2]

    @property
    def target_prefix(self) -> str:
        """What comes before the path in a request: a proxy wants to know the server, too."""
        path = self.url.path.rstrip("/")
        if self.proxy is not None and self.tls is None:
            return f"{self.url.scheme}://{self.authority}{path}"
        return path


async def open_connection(server: Server) -> HttpConnection:
    """A new connection; raises ConnectError."""
    try:
        if server.proxy is None:
            return await _direct(server)
        return await _through_proxy(server, server.proxy)
    except ssl.SSLCertVerificationError as error:
        raise ConnectError(f"certificate verify failed: {error.verify_message}") from error
    except ssl.SSLError as error:
        raise ConnectError(f"TLS: {error.reason or error}") from error
    except OSError as error:
        raise ConnectError(_reason(error)) from error


async def _direct(server: Server) -> HttpConnection:
    name = None if server.tls is None else server.tls_server_name or server.address[0]
    return await _connect(HttpConnection, server.address, server.tls, name)


async def _through_proxy(server: Server, proxy: SplitResult) -> HttpConnection:
    tls = ssl.create_default_context() if proxy.scheme == "https" else None
    name = None if tls is None else proxy.hostname
    if server.tls is None:
        return await _connect(HttpConnection, _address(proxy), tls, name)
    tunnel = await _connect(_Tunnel, _address(proxy), tls, name)
    try:
        await tunnel.open(server, proxy)
        connection = HttpConnection()
        upgraded = await asyncio.get_running_loop().start_tls(
            tunnel.transport,
            connection,
            server.tls,
            server_hostname=server.tls_server_name or server.address[0],
        )
    except BaseException:
        tunnel.abort()
        raise
    connection.connection_made(upgraded)
    return connection


async def _connect(
    protocol: Callable[[], P],
    address: tuple[str, int],
    tls: ssl.SSLContext | None,
    server_hostname: str | None,
) -> P:
    connected = await _connected_socket(*address)
    made: list[P] = []

    def connection() -> P:
        made.append(protocol())
        return made[0]

    try:
        await asyncio.get_running_loop().create_connection(
            connection, sock=connected, ssl=tls, server_hostname=server_hostname
        )
    except BaseException:
        # After its handshake a transport closes only when the server agrees, and must not lose its socket until then.
        if made:
            made[0].abort()
        connected.close()
        raise
    return made[0]


class _Tunnel(asyncio.Protocol):
    """A connection to a proxy, which is asked to connect to the server."""

    def __init__(self) -> None:
        self.transport: Any = None
        self._received = b""
        self._answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self, server: Server, proxy: SplitResult) -> None:
        host, port = server.address
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        authorization = proxy_authorization(proxy)
        if authorization:
            lines.append(f"Proxy-Authorization: {authorization}")
        self.transport.write("\r\n".join([*lines, "", ""]).encode("ascii"))
        await self._answer
        words = self._received.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        if len(words) < 2 or not words[1].startswith("2"):
            raise OSError(f"proxy {_shown(proxy)}: {' '.join(words[1:]) or 'no HTTP response'}")

    def abort(self) -> None:
        """End the connection at once."""
        if self.transport is not None:
            self.transport.abort()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._answer.done() and (
            b"\r\n\r\n" in self._received or len(self._received) > MAX_PROXY_HEAD
        ):
            self._answer.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(error or OSError("the proxy closed the connection"))


def proxy_authorization(proxy: SplitResult) -> str:
    """The value of the header, from user and password in the proxy's URL; empty without."""
    if proxy.username is None:
        return ""
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"


def _address(url: SplitResult) -> tuple[str, int]:
    return url.hostname or "", url.port or _PORTS.get(url.scheme, 443)


def _shown(proxy: SplitResult) -> str:
    return proxy.netloc.rpartition("@")[2]


async def _connected_socket(host: str, port: int) -> socket.socket:
    """Connected to the first of the host's addresses that answers."""
    loop = asyncio.get_running_loop()
    failure: OSError = OSError(f"no address for {host}")
    for family, type_, protocol, _, address in await loop.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        made = socket.socket(family, type_, protocol)
        try:
            made.setblocking(False)
            _set_options(made)
            await loop.sock_connect(made, address)
        except OSError as error:
            made.close()
            failure = error
        except BaseException:
            made.close()
            raise
        else:
            return made
    raise failure


def _set_options(made: socket.socket) -> None:
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in _KEEPALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)


def _reason(error: OSError) -> str:
    """Without the address, which asyncio adds to some errors."""
    if error.strerror and "Connect call failed" not in error.strerror:
        return error.strerror
    return os.strerror(error.errno) if error.errno else str(error) or "cannot connect"
