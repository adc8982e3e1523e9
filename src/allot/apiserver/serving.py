"""An API server on a socket: TLS, signals, clean shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from allot.apiserver.app import TLS, App
from allot.apiserver.authentication import PeerCertificate
from allot.apiserver.credentials import Credentials

KEEP_ALIVE_SECONDS: Final = 120
SHUTDOWN_SECONDS: Final = 10
GOODBYE_SECONDS: Final = 0.2
BACKLOG: Final = 1024
MAX_HEAD: Final = 1024 * 1024
"""Longer headers are refused: they are read before anybody knows who sends them."""


class CertificateProtocol(HttpToolsProtocol):
    """Tells the application who the client's certificate says it is."""

    _certificate: PeerCertificate | None = None
    _head_size: int | None = None
    """Bytes of a head that goes on; None while none is being read."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._certificate = peer_certificate(tls.getpeercert())

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head_size is None or self.transport.is_closing():
            return
        self._head_size += len(data)
        if self._head_size > MAX_HEAD:
            self.send_400_response("The headers of the request are too large.")

    def on_headers_complete(self) -> None:
        self._head_size = None
        super().on_headers_complete()

    def on_message_begin(self) -> None:
        self._head_size = 0
        super().on_message_begin()
        if self._certificate is not None:
            self.scope["extensions"] = {TLS: self._certificate}  # type: ignore[dict-item]


def peer_certificate(parsed: Any) -> PeerCertificate | None:
    """The subject of a certificate that was verified; None if there was none."""
    if not parsed:
        return None
    pairs = [pair for part in parsed.get("subject", ()) for pair in part]
    name = next((value for kind, value in pairs if kind == "commonName"), "")
    groups = tuple(value for kind, value in pairs if kind == "organizationName")
    return PeerCertificate(name, groups)


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound; raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


class Server(uvicorn.Server):
    """uvicorn, with signals left to whoever runs it."""

    def __init__(self, app: App, credentials: Credentials) -> None:
        config = uvicorn.Config(
            app,
            http=CertificateProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            ssl_certfile=credentials.cert_file,
            ssl_keyfile=credentials.key_file,
            ssl_ca_certs=str(credentials.ca_file),
            ssl_cert_reqs=ssl.CERT_OPTIONAL,
        )
        super().__init__(config)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Finish what is under way and return from `serve`."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        hanging_up = asyncio.create_task(self._hang_up())
        try:
            await super().shutdown(sockets)
        finally:
            hanging_up.cancel()

    async def _hang_up(self) -> None:
        """Let go of clients that have got everything but do not answer the goodbye of TLS."""
        while True:
            await asyncio.sleep(GOODBYE_SECONDS)
            for connection in tuple(self.server_state.connections):
                transport = connection.transport
                if transport.is_closing() and not transport.get_write_buffer_size():
                    transport.abort()
