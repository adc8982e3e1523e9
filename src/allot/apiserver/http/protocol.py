"""HTTP on one connection: uvicorn's, with limits for what is received before authentication.

It tells `connections` what the connection does, and the application who the client's certificate says it is.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from allot.apiserver.auth.authentication import PeerCertificate
from allot.apiserver.http.connections import Connections, Slot
from allot.apiserver.http.http_exchange import CONNECTION, TLS
from allot.apiserver.log_aggregation import RateFilter

MAX_HEAD: Final = 256 * 1024
MAX_HEADERS: Final = 500
MAX_PIPELINED: Final = 32
"""Requests that wait on one connection for the answer to the one before."""
WRITE_BUFFER: Final = 128 * 1024
LINGER_SECONDS: Final = 2.0
LINGER_QUIET_SECONDS: Final = 0.2
LINGER_BYTES: Final = 8 * 1024 * 1024
MAX_DRAINING: Final = 16
"""Connections whose unread bodies are taken and dropped at once. Others are ended without that."""

_log: Final = logging.getLogger("allot.apiserver.http")
_log.addFilter(RateFilter())


class ServerProtocol(HttpToolsProtocol):
    """One connection from its handshake on."""

    def __init__(self, connections: Connections, slot: Slot, **uvicorn_arguments: Any) -> None:
        super().__init__(**uvicorn_arguments)
        self.logger = _log
        self._registry = connections
        self._slot = slot
        self._certificate: PeerCertificate | None = None
        self._head_size: int | None = None
        """Bytes of a head that goes on; None while none is being read."""
        self._handle = ConnectionHandle(self)
        self._lingers_until: float | None = None
        self._is_draining = False
        self._dropped = 0

    # --- the connection ---

    def connection_made(self, transport: Any) -> None:
        transport.set_write_buffer_limits(high=WRITE_BUFFER)
        super().connection_made(_Transport(transport, self))  # type: ignore[arg-type]
        self._slot.abort = self._abort
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._certificate = peer_certificate(tls.getpeercert())

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._registry.gone(self._slot)
        if self._is_draining:
            self._is_draining = False
            self._registry.draining -= 1
        # Buffers of TLS are large, and garbage is collected seldom: nothing may refer back to us.
        self._unset_keepalive_if_required()
        self.pipeline.clear()
        self._slot.abort = _nothing
        self._handle.protocol = None
        if isinstance(self.transport, _Transport):
            self.transport.detach()

    def abort(self, reason: str) -> None:
        """End it at once, whatever is still to be sent."""
        self._registry.end(self._slot, reason)

    def _abort(self) -> None:
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.abort()

    def close(self, transport: asyncio.Transport) -> None:
        """Close it; but if the client is still sending, let it see the answer first.

        Closed at once, its further bytes would be answered with a reset, which destroys what it has not read yet.
        """
        if self._lingers_until is not None:
            return
        is_sending = self._head_size is not None or (
            self.cycle is not None and self.cycle.more_body
        )
        if not is_sending:
            self._registry.closing(self._slot)
            transport.close()
            return
        self._lingers_until = self.loop.time() + LINGER_SECONDS
        self._linger()
        if self._registry.draining < MAX_DRAINING:
            self._registry.draining += 1
            self._is_draining = True
            self.flow.resume_reading()
        else:
            self.flow.pause_reading()

    def _linger(self) -> None:
        left = (self._lingers_until or 0.0) - self.loop.time()
        self._registry.closing(self._slot, min(left, LINGER_QUIET_SECONDS))

    @property
    def is_lingering(self) -> bool:
        return self._lingers_until is not None

    # --- what comes in ---

    def data_received(self, data: bytes) -> None:
        if self.is_lingering:
            self._dropped += len(data)
            if self._dropped > LINGER_BYTES:
                self.abort("unread-body")
            else:
                self._linger()
            return
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._head_size is not None:
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self.send_400_response("The headers of the request are too large.")
                return
        if self.cycle is None or self.cycle.response_complete:
            self._registry.reading_head(self._slot)

    def on_message_begin(self) -> None:
        self._head_size = 0
        super().on_message_begin()
        extensions: dict[str, Any] = {CONNECTION: self._handle}
        if self._certificate is not None:
            extensions[TLS] = self._certificate
        self.scope["extensions"] = extensions

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.headers) >= MAX_HEADERS:
            raise ValueError("too many headers")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError("too many pipelined requests")
        self._head_size = None
        self._registry.busy(self._slot)
        super().on_headers_complete()

    # --- what goes out ---

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing() or not self.cycle.response_complete:
            return
        self._registry.idle(self._slot)
        if self._head_size is not None:
            self._registry.reading_head(self._slot)


class ConnectionHandle:
    """The connection as exchanges know it. It does not keep one alive that has ended."""

    __slots__ = ("protocol",)

    def __init__(self, protocol: ServerProtocol) -> None:
        self.protocol: ServerProtocol | None = protocol

    @property
    def is_write_paused(self) -> bool:
        return self.protocol is not None and self.protocol.flow.write_paused

    @property
    def has_whole_body(self) -> bool:
        # Of the request that was read last: those before it have arrived.
        protocol = self.protocol
        return protocol is not None and protocol.cycle is not None and not protocol.cycle.more_body

    def join_next_writes(self) -> None:
        if self.protocol is not None and isinstance(self.protocol.transport, _Transport):
            self.protocol.transport.join_next_writes()

    def abort(self, reason: str) -> None:
        if self.protocol is not None:
            self.protocol.abort(reason)


class _Transport:
    """A connection's transport whose `close` the protocol decides on."""

    def __init__(self, transport: asyncio.Transport, protocol: ServerProtocol) -> None:
        self._transport: asyncio.Transport | None = transport
        self._protocol: ServerProtocol | None = protocol
        self.write: Callable[[bytes], None] = transport.write
        self.abort: Callable[[], None] = transport.abort
        self.pause_reading: Callable[[], None] = transport.pause_reading
        self.resume_reading: Callable[[], None] = transport.resume_reading
        self.get_extra_info: Callable[..., Any] = transport.get_extra_info
        self.get_write_buffer_size: Callable[[], int] = transport.get_write_buffer_size

    def join_next_writes(self) -> None:
        """Keep what is written next, and write it with what comes after it."""
        self.write = self._keep

    def _keep(self, first: bytes) -> None:
        self.write = partial(self._write_both, first)

    def _write_both(self, first: bytes, second: bytes) -> None:
        if self._transport is not None:
            self.write = self._transport.write
            self.write(first + second)

    def detach(self) -> None:
        """The connection has ended."""
        self._transport = self._protocol = None
        self.write = self.abort = self.pause_reading = self.resume_reading = _nothing
        self.get_extra_info = _nothing
        self.get_write_buffer_size = lambda: 0

    def is_closing(self) -> bool:
        transport, protocol = self._transport, self._protocol
        return (
            transport is None or protocol is None or protocol.is_lingering or transport.is_closing()
        )

    def close(self) -> None:
        if self._transport is not None and self._protocol is not None:
            self._protocol.close(self._transport)


def _nothing(*_: object) -> None:
    """What is done with a connection that has ended."""


def peer_certificate(parsed: Any) -> PeerCertificate | None:
    """The subject and the times of a certificate whose signature was verified; None if there was none."""
    if not parsed:
        return None
    pairs = [pair for part in parsed.get("subject", ()) for pair in part]
    name = next((value for kind, value in pairs if kind == "commonName"), "")
    groups = tuple(value for kind, value in pairs if kind == "organizationName")
    times = [
        ssl.cert_time_to_seconds(parsed[field])
        for field in ("notBefore", "notAfter")
        if field in parsed
    ]
    return PeerCertificate(name, groups, *times)
