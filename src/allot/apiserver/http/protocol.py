"""HTTP on one connection: uvicorn's, with limits for what is received before authentication.

It tells `connections` what the connection does, and the application who the client's certificate says it is.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from allot.apiserver.auth.authentication import PeerCertificate
from allot.apiserver.http.connection_request import (
    Application,
    ConnectionRequest,
    Handle,
    log,
)
from allot.apiserver.http.connections import Connections, Slot
from allot.apiserver.http.http_exchange import Headers
from allot.apiserver.http.request_head import LastHead, RequestHead
from allot.apiserver.http.request_tasks import RequestTasks

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


class ServerProtocol(HttpToolsProtocol):
    """One connection from its handshake on."""

    cycle: ConnectionRequest | None  # type: ignore[assignment]
    pipeline: deque[ConnectionRequest]  # type: ignore[assignment]

    def __init__(
        self,
        connections: Connections,
        slot: Slot,
        application: Application,
        tasks: RequestTasks,
        **uvicorn_arguments: Any,
    ) -> None:
        super().__init__(**uvicorn_arguments)
        self.logger = log
        self.certificate: PeerCertificate | None = None
        self._registry = connections
        self._slot = slot
        self._application = application
        self._tasks = tasks
        self._answering: ConnectionRequest | None = None
        """The request that is being answered, or was last. Others may have come after it."""
        self._last_head = LastHead()
        self._is_parsing = False
        """Whether the parser is inside of a request."""
        self._head_size: int | None = None
        """Bytes of a head that goes on; None while none is being read."""
        self._missing = 0
        """Bytes of the body of a request that is not parsed."""
        self._handle = Handle(self)
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
            self.certificate = peer_certificate(tls.getpeercert())

    def connection_lost(self, exc: Exception | None) -> None:
        self._tell_gone()
        super().connection_lost(exc)
        self._registry.gone(self._slot)
        if self._is_draining:
            self._is_draining = False
            self._registry.draining -= 1
        # Buffers of TLS are large, and garbage is collected seldom: nothing may refer back to us.
        self.pipeline.clear()
        self._slot.abort = _nothing
        self._handle.connection = None
        if isinstance(self.transport, _Transport):
            self.transport.detach()

    def abort(self, reason: str) -> None:
        """End it at once, whatever is still to be sent."""
        self._registry.end(self._slot, reason)

    def _abort(self) -> None:
        self._tell_gone()
        self.transport.abort()

    def _tell_gone(self) -> None:
        """The request that is being answered hears that its client is gone."""
        request = self._answering
        if request is not None and not request.response_complete:
            request.disconnected = True
            request.message_event.set()

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
        if self._missing:
            data = self._take_body(data)
        elif self._is_repeated(data):
            data = self._begin_repeated(data)
        if data:
            super().data_received(data)
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if (is_answering and self._head_size is None) or self.transport.is_closing():
            return
        if self._head_size is not None:
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self.send_400_response("The headers of the request are too large.")
                return
        if not is_answering:
            self._registry.reading_head(self._slot)

    def _is_repeated(self, data: bytes) -> bool:
        """Whether a request begins as the last one did, so that it need not be parsed."""
        text, last = self._last_head.text, self.cycle
        if not (text and data.startswith(text)) or self._is_parsing:
            return False
        return last is not None and last.response_complete

    def _begin_repeated(self, data: bytes) -> bytes:
        """Begin a request that is not parsed, with its body as far as it is here; the rest."""
        text, head = self._last_head.text, self._last_head.head
        assert head is not None
        self._registry.busy(self._slot)
        request = self._begin(head)
        body, length = data[len(text) :], head.headers.length
        if len(body) == length:
            request.has_whole_body(body)
            return b""
        self._missing = length
        return self._take_body(body)

    def _take_body(self, data: bytes) -> bytes:
        """Take what belongs to the body of a request that is not parsed; the rest."""
        part, rest = data, b""
        if len(data) > self._missing:
            part, rest = data[: self._missing], data[self._missing :]
        self._missing -= len(part)
        if part:
            self.on_body(part)
        if not self._missing:
            self.on_message_complete()
        return rest

    # --- what the parser finds ---

    def on_message_begin(self) -> None:
        self._is_parsing = True
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
        self._begin(self._last_head.read(self.parser, self.url, self.headers))

    def on_body(self, body: bytes) -> None:
        request = self.cycle
        if request is None or request.response_complete:
            return
        request.add_body(body)
        if len(request.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        request.message_event.set()

    def on_message_complete(self) -> None:
        self._is_parsing = False
        self.headers = []  # they and the trailers are read, and the connection may stay
        request = self.cycle
        if request is not None and not request.response_complete:
            request.more_body = False
            request.message_event.set()

    # --- what is answered ---

    def _begin(self, head: RequestHead) -> ConnectionRequest:
        """A request, of which the body comes now."""
        before = self.cycle
        self.cycle = request = ConnectionRequest(head, self, self._handle)
        if before is None or before.response_complete:
            self._answering = request
            self._tasks.run(request.run(self._application))
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft(request)
        return request

    @property
    def default_headers(self) -> Headers:
        """Those of every answer: the time."""
        return self.server_state.default_headers

    def on_response_complete(self) -> None:
        """Begin with the next request, if it is here. `Connections` ends those that stay idle, which need no timer."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self.pipeline:
            self._answering = request = self.pipeline.pop()
            self._tasks.run(request.run(self._application))
            return
        self._registry.idle(self._slot)
        if self._head_size is not None:
            self._registry.reading_head(self._slot)


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
