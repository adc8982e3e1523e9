"""HTTP on one connection: uvicorn's, with limits for what is received before authentication.

It tells `connections` what the connection does, and the application who the client's certificate says it is.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from allot.apiserver.auth.authentication import PeerCertificate
from allot.apiserver.http.connections import Connections, Slot
from allot.apiserver.http.http_exchange import CLOSE, CONNECTION, HEADERS, TLS, Headers
from allot.apiserver.http.request_headers import LastHeaders
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

_control_characters: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]").search
"""Those that a head must not have, beside the ends of its lines."""
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
        self._last_headers = LastHeaders()
        self._head_size: int | None = None
        """Bytes of a head that goes on; None while none is being read."""
        self._handle = _Handle(self)
        self._lingers_until: float | None = None
        self._is_draining = False
        self._dropped = 0

    # --- the connection ---

    def connection_made(self, transport: Any) -> None:
        transport.set_write_buffer_limits(high=WRITE_BUFFER)
        super().connection_made(_Transport(transport, self))  # type: ignore[arg-type]
        self._slot.abort = self._abort
        self._connection_scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
        }
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
        if self._lingers_until is not None:
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
        self.url = b""
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        headers = self.headers
        if len(headers) >= MAX_HEADERS:
            raise ValueError("too many headers")
        headers.append((name, value))

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError("too many pipelined requests")
        self._head_size = None
        self._registry.busy(self._slot)
        parser, headers = self.parser, self._last_headers.read(self.headers)
        url = httptools.parse_url(self.url)
        version = parser.get_http_version()
        path = url.path.decode("ascii")
        extensions: dict[str, Any] = {HEADERS: headers}
        if self._certificate is not None:
            extensions[TLS] = self._certificate
        scope: Any = {
            **self._connection_scope,
            "http_version": version,
            "method": parser.get_method().decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": url.path,
            "query_string": url.query or b"",
            "headers": headers.pairs,
            "extensions": extensions,
        }
        before = self.cycle
        self.cycle = cycle = RequestResponseCycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=headers.expects_continue,
            keep_alive=version != "1.0" and parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        extensions[CONNECTION] = RequestConnection(self._handle, cycle)
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def on_message_complete(self) -> None:
        self.headers = []  # they and the trailers are read, and the connection may stay
        super().on_message_complete()

    # --- what goes out ---

    def on_response_complete(self) -> None:
        """Begin with the next request, if it is here. `Connections` ends those that stay idle, which need no timer."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._registry.idle(self._slot)
        if self._head_size is not None:
            self._registry.reading_head(self._slot)


class _Handle:
    """Refers to a connection as long as it lasts. It does not keep one alive that has ended."""

    __slots__ = ("protocol",)

    def __init__(self, protocol: ServerProtocol) -> None:
        self.protocol: ServerProtocol | None = protocol


class RequestConnection:
    """The connection as the exchange of one of its requests knows it."""

    __slots__ = ("_cycle", "_handle")

    def __init__(self, handle: _Handle, cycle: RequestResponseCycle) -> None:
        self._handle = handle
        self._cycle = cycle

    @property
    def is_write_paused(self) -> bool:
        protocol = self._handle.protocol
        return protocol is not None and protocol.flow.write_paused

    def whole_body(self) -> bytes | None:
        """What the cycle would receive, if that is the whole body; None if the cycle has to wait or send something."""
        protocol, cycle = self._handle.protocol, self._cycle
        if protocol is None or cycle.more_body or cycle.waiting_for_100_continue:
            return None
        if cycle.disconnected or cycle.response_complete:
            return None
        if protocol.flow.read_paused:
            protocol.flow.resume_reading()
        cycle.message_event.clear()
        body = bytes(cycle.body)
        cycle.body = bytearray()
        return body

    def answer(self, code: int, headers: Headers, body: bytes) -> bool:
        """Write a whole answer, which the cycle would do in many steps; False if the cycle has to do it.

        The cycle refuses invalid headers.
        """
        protocol, cycle = self._handle.protocol, self._cycle
        if protocol is None or protocol.flow.write_paused:
            return False
        if cycle.disconnected or cycle.response_started:
            return False
        is_last = CLOSE in headers
        if not (is_last or cycle.keep_alive):
            headers, is_last = [*headers, CLOSE], True
        lines = [*map(b": ".join, cycle.default_headers), *map(b": ".join, headers), b""]
        head = b"\r\n".join(lines)
        ends = len(lines) - 1
        if head.count(b"\n") != ends or head.count(b"\r") != ends or _control_characters(head):
            return False
        if is_last:
            cycle.keep_alive = False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[code], head, body))
        cycle.message_event.set()
        if is_last:
            cycle.transport.close()
        cycle.on_response()
        return True

    def send_chunk(self, chunk: bytes) -> bool:
        """Write a chunk, if the answer consists of such; False if the cycle has to do it, or there is nothing to write."""
        protocol, cycle = self._handle.protocol, self._cycle
        if not chunk or protocol is None or protocol.flow.write_paused:
            return False
        if cycle.disconnected or cycle.response_complete or not cycle.chunked_encoding:
            return False
        cycle.transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        return True

    def abort(self, reason: str) -> None:
        if self._handle.protocol is not None:
            self._handle.protocol.abort(reason)


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
