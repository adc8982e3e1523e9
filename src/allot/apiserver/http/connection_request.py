"""A request on its connection, and what is sent for it: uvicorn's cycle, with shorter ways for what is there as a whole."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, Protocol

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from allot.apiserver.auth.authentication import PeerCertificate
from allot.apiserver.http.exchange import Exchange
from allot.apiserver.http.http_exchange import (
    ConnectionExchange,
    Headers,
    TransferLimits,
)
from allot.apiserver.http.request_head import RequestHead
from allot.apiserver.log_aggregation import RateFilter

log: Final = logging.getLogger("allot.apiserver.http")
log.addFilter(RateFilter())


class Application(Protocol):
    """What answers requests."""

    @property
    def transfer_limits(self) -> TransferLimits: ...

    async def serve(self, exchange: Exchange) -> None: ...


class OpenConnection(Protocol):
    """What a request needs of its connection."""

    transport: Any
    flow: FlowControl
    client: tuple[str, int] | None
    certificate: PeerCertificate | None

    @property
    def default_headers(self) -> Headers:
        """Those of every answer."""

    def on_response_complete(self) -> None:
        """Begin with the next request."""

    def abort(self, reason: str) -> None:
        """End it at once, whatever is still to be sent."""


class Handle:
    """Refers to a connection as long as it lasts. It does not keep one alive that has ended."""

    __slots__ = ("connection",)

    def __init__(self, connection: OpenConnection) -> None:
        self.connection: OpenConnection | None = connection


class ConnectionRequest(RequestResponseCycle):
    """One request, from its head to the end of its answer."""

    logger = log
    access_log = False
    disconnected = False
    more_body = True
    response_started = False
    response_complete = False
    chunked_encoding: bool | None = None
    expected_content_length = 0
    body: Any = b""
    """What has arrived and was not taken: bytes, or a `bytearray` of several parts."""
    _event: asyncio.Event | None = None

    def __init__(self, head: RequestHead, connection: OpenConnection, handle: Handle) -> None:
        self._head: RequestHead | None = head
        self._handle = handle
        self._certificate = connection.certificate
        self.client = connection.client
        self.scope: Any = {"method": head.method}  # the cycle reads nothing else
        self.transport = connection.transport
        self.flow = connection.flow
        self.keep_alive = head.keeps_alive
        self.waiting_for_100_continue = head.headers.expects_continue

    async def run(self, application: Application) -> None:
        """Have it answered. If it is not, the connection ends."""
        head = self._head
        self._head = None  # it may be long, and a connection keeps its last request
        assert head is not None, "a request is answered once"
        limits = application.transfer_limits
        exchange = ConnectionExchange(head, self, self._certificate, limits)
        try:
            await application.serve(exchange)
        except BaseException:
            log.exception("%s %s failed", head.method, head.path)
            await self._give_up()
        else:
            if not (self.response_complete or self.disconnected):
                log.error("%s %s was not answered", head.method, head.path)
                await self._give_up()

    async def _give_up(self) -> None:
        if self.response_started:
            self.transport.close()
        else:
            await self.send_500_response()

    # --- what comes in ---

    @property
    def message_event(self) -> asyncio.Event:  # type: ignore[override]
        """Set when there is something to receive. Most requests wait for nothing, and need none."""
        if self._event is None:
            self._event = asyncio.Event()
        return self._event

    def has_whole_body(self, body: bytes) -> None:
        """It came with its body: nothing can wait for that yet."""
        self.body, self.more_body = body, False

    def add_body(self, part: bytes) -> None:
        """A part that has arrived; mostly it is all."""
        body = self.body
        if not body:
            self.body = part
        else:
            if isinstance(body, bytes):
                self.body = bytearray(body)
            self.body += part

    def whole_body(self) -> bytes | None:
        """What the cycle would receive, if that is the whole body; None if the cycle has to wait or send something."""
        if self._handle.connection is None or self.more_body or self.waiting_for_100_continue:
            return None
        if self.disconnected or self.response_complete:
            return None
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self._event is not None:
            self._event.clear()
        body, self.body = bytes(self.body), b""
        return body

    # --- what goes out ---

    @property
    def default_headers(self) -> Headers:  # type: ignore[override]
        connection = self._handle.connection
        return [] if connection is None else connection.default_headers

    @property
    def is_write_paused(self) -> bool:
        return self.flow.write_paused and self._handle.connection is not None

    def answer(self, code: int, lines: bytes, body: bytes) -> bool:
        """Write a whole answer, which the cycle would do in many steps; False if the cycle has to do it.

        `lines` are those of valid headers.
        """
        connection = self._handle.connection
        if connection is None or self.flow.write_paused or not self.keep_alive:
            return False
        if self.disconnected or self.response_started:
            return False
        usual = [b"%b: %b\r\n" % header for header in connection.default_headers]
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.transport.write(b"%b%b%b\r\n%b" % (STATUS_LINE[code], b"".join(usual), lines, body))
        if self._event is not None:
            self._event.set()
        connection.on_response_complete()
        return True

    def send_chunk(self, chunk: bytes) -> bool:
        """Write a chunk, if the answer consists of such; False if the cycle has to do it, or there is nothing to write."""
        if not chunk or self.flow.write_paused or self._handle.connection is None:
            return False
        if self.disconnected or self.response_complete or not self.chunked_encoding:
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        return True

    def on_response(self) -> None:
        """The cycle has sent the answer."""
        if self._handle.connection is not None:
            self._handle.connection.on_response_complete()

    def abort(self, reason: str) -> None:
        if self._handle.connection is not None:
            self._handle.connection.abort(reason)
