"""One HTTP exchange on its connection: reads the request body and sends the response, each within a deadline.

A client must keep a minimum transfer rate: a grace period, and more time for every byte that is transferred. A client
that transfers nothing is disconnected after the grace period, a slow one not much later.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

from allot.apiserver import api_errors
from allot.apiserver.auth.authentication import PeerCertificate
from allot.apiserver.http.exchange import ClientGoneError, Message, Receive, Scope, Send
from allot.apiserver.http.flow_control import InFlightRequest
from allot.apiserver.http.request_head import RequestHead
from allot.apiserver.http.request_headers import RequestHeaders, known_headers
from allot.apiserver.http.requests import parse_query
from allot.apiserver.http.responses import (
    GZIP_FROM,
    NOT_CACHED,
    Gzip,
    Header,
    Response,
    StreamResponse,
    compressed,
)
from allot.apiserver.registry.uids import new_uid
from allot.client.asgi import USER, WHOLE_BODY
from allot.client.component_users import ComponentUser

MAX_BODY: Final = 3 * 1024 * 1024
"""Larger bodies are refused, as Kubernetes does."""
PIECE: Final = 128 * 1024
"""Answers are sent in pieces, so that the buffers of a connection stay small."""
MAX_AUDIT_ID: Final = 64
UNREAD_BODY: Final = 64 * 1024
"""A longer body that is not read ends the connection, as it costs less than reading it."""
WATCH_SECONDS: Final = 60.0
"""A watch whose client receives nothing for so long is ended."""
CLOSE: Final = (b"connection", b"close")
"""The header of an answer after which the connection ends."""

_NOTHING: Final[Scope] = {}
_ends_line: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]").search
"""Finds characters that a header must not have."""

Headers = list[tuple[bytes, bytes]]


class TransferRate(NamedTuple):
    """The minimum rate of a transfer."""

    grace_seconds: float
    bytes_per_second: float

    def deadline(self, started: float, moved: int) -> float:
        return started + self.grace_seconds + moved / self.bytes_per_second


class TransferLimits(NamedTuple):
    """The minimum rates of receiving bodies and sending responses, and the timeout of watches."""

    reading: TransferRate = TransferRate(10.0, 64 * 1024)
    sending: TransferRate = TransferRate(20.0, 256 * 1024)
    watch_seconds: float = WATCH_SECONDS


class Connection(Protocol):
    """What an exchange needs of the connection it is on."""

    @property
    def client(self) -> tuple[str, int] | None:
        """The address at the other end."""

    async def receive(self) -> Any:
        """The next part of the body, or that the client is gone, as ASGI messages."""

    async def send(self, message: Any) -> None:
        """Send what an ASGI message says."""

    @property
    def is_write_paused(self) -> bool:
        """Whether what is sent now would wait for the client to take what was sent before."""

    def whole_body(self) -> bytes | None:
        """Take the body, if all of it has arrived and nothing has to be sent before; None otherwise."""

    def answer(self, code: int, lines: bytes, body: bytes) -> bool:
        """Send a whole answer in one packet, if nothing has to be waited for; whether it was sent.

        `lines` are those of its headers.
        """

    def send_chunk(self, chunk: bytes) -> bool:
        """Send a part of an answer that has begun, if nothing has to be waited for; whether it was sent."""

    def abort(self, reason: str) -> None:
        """End it at once, whatever is still to be sent."""


class HttpExchange:
    """Reads the bytes of a request and sends those of its response: one that comes as ASGI describes it."""

    certificate: Any = None
    component: ComponentUser | None = None
    sees_pending_writes = False
    _connection: Connection | None = None
    _audit_id = ""
    _is_reading = False
    _is_read = False

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, transfer_limits: TransferLimits
    ) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.receive = receive
        self._send = send
        self._transfer_limits = transfer_limits
        extensions = scope.get("extensions", _NOTHING)
        self._whole: bytes | None = extensions.get(WHOLE_BODY)
        self.is_in_process = self._whole is not None
        """Whether the client is in this process, so that nothing needs to be waited for."""
        if self.is_in_process:
            self.component = extensions.get(USER)
            self._headers = known_headers(tuple(scope["headers"]))
        else:
            self._headers = RequestHeaders(scope["headers"])

    @property
    def path(self) -> str:
        path: bytes = self.scope["raw_path"]
        return path.decode("latin-1")

    @property
    def query(self) -> Mapping[str, str]:
        query: bytes = self.scope["query_string"]
        return parse_query(query) if query else {}

    @property
    def audit_id(self) -> str:
        if not self._audit_id:
            given = self.header(b"audit-id")
            is_used = 0 < len(given) <= MAX_AUDIT_ID
            self._audit_id = given.decode("latin-1") if is_used else new_uid()
        return self._audit_id

    def header(self, name: bytes) -> bytes:
        return self._headers.by_name.get(name, b"")

    @property
    def headers(self) -> Mapping[str, str]:
        return self._headers.text

    @property
    def impersonates(self) -> bool:
        return self._headers.impersonates

    # --- what comes in ---

    async def read(self, in_flight: InFlightRequest) -> bytes:
        if self._whole is not None:
            _check_size(len(self._whole))
            return self._whole
        headers = self._headers
        announced = headers.length
        _check_size(announced)
        if size := MAX_BODY if headers.is_chunked else announced:
            await in_flight.take_body(size)
        self._is_reading = True
        body = None if self._connection is None else self._connection.whole_body()
        if body is None:
            body = await self._read_all()
        else:
            _check_size(len(body))
        self._is_read = True
        in_flight.shrink_body(len(body))
        return body

    async def _read_all(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        loop = asyncio.get_running_loop()
        started = loop.time()
        while True:
            try:
                deadline = self._transfer_limits.reading.deadline(started, size)
                async with asyncio.timeout_at(deadline):
                    message = await self.receive()
            except TimeoutError:
                raise api_errors.request_timeout(
                    f"the body of the request did not arrive in time: {size} bytes"
                    f" in {loop.time() - started:.0f} s"
                ) from None
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            part = message.get("body", b"")
            size += len(part)
            _check_size(size)
            parts.append(part)
            if not message.get("more_body"):
                return b"".join(parts)

    # --- what goes out ---

    async def answer(self, response: Response) -> None:
        length = len(response.body)
        if self.is_in_process and response.more is None and length < GZIP_FROM:
            await self._answer_in_process(response, length)
            return
        wants_gzip = (response.more is not None or length >= GZIP_FROM) and (
            _accepts_gzip(self.header(b"accept-encoding"))
        )
        if wants_gzip and response.more is None:
            response = await asyncio.to_thread(compressed, response)
        headers = [
            *_common_headers(response.content_type, self.audit_id, response.cache_control),
            *response.headers,
        ]
        if not self.is_in_process and self._leaves_body_unread:
            headers.append(CLOSE)
        if response.more is not None:
            await self._answer_in_pieces(response, response.more, headers, wants_gzip)
            return
        headers.append((b"content-length", str(len(response.body)).encode()))
        body = b"" if self.method == "HEAD" else response.body
        if self.is_in_process:
            await self._send(_start(response.code, headers))
            await self._send(_body(body, more=False))
            return
        progress = self._progress()
        await progress.send(_start(response.code, headers))
        left = len(body)
        for piece in _pieces(body):
            left -= len(piece)
            await progress.send(_body(piece, more=left > 0), len(piece))

    async def _answer_in_process(self, response: Response, length: int) -> None:
        """A small answer to a client that takes it at once."""
        headers = [
            (b"audit-id", self.audit_id.encode("latin-1")),
            (b"cache-control", response.cache_control),
            type_header(response.content_type),
            *response.headers,
            (b"content-length", b"%d" % length),
        ]
        body = b"" if self.method == "HEAD" else response.body
        start = {"type": "http.response.start", "status": response.code, "headers": headers}
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def _answer_in_pieces(
        self, response: Response, more: AsyncIterator[bytes], headers: Headers, wants_gzip: bool
    ) -> None:
        """A long answer whose length is not known yet."""
        gzip = Gzip() if wants_gzip else None
        if gzip is not None:
            headers.append((b"content-encoding", b"gzip"))
        progress = self._progress()
        await progress.send(_start(response.code, headers))
        if self.method == "HEAD":
            await progress.send(_body(b"", more=False))
            return
        async for chunk in _chained(response.body, more):
            shown = chunk if gzip is None else await asyncio.to_thread(gzip.piece, chunk)
            for piece in (shown,) if self.is_in_process else _pieces(shown):
                await progress.send(_body(piece, more=True), len(piece))
        await progress.send(_body(b"" if gzip is None else gzip.end(), more=False))

    async def stream(self, response: StreamResponse, count: Callable[[int], None]) -> None:
        seconds = self._transfer_limits.watch_seconds
        headers = [*_common_headers(response.content_type, self.audit_id), *response.headers]
        await self._within(seconds, _start(200, headers))
        connection = self._connection
        async for chunk in response.chunks:
            if self.is_in_process:
                await self._send(_body(chunk, more=True))
            elif connection is None or len(chunk) > PIECE or not connection.send_chunk(chunk):
                for piece in _pieces(chunk):
                    await self._within(seconds, _body(piece, more=True))
            count(len(chunk))
        await self._within(seconds, _body(b"", more=False))

    def abort(self, reason: str) -> None:
        if self._connection is not None:
            self._connection.abort(reason)

    def _progress(self) -> _Progress:
        return _Progress(self._within, self._transfer_limits.sending)

    async def _within(self, seconds: float, message: Message) -> None:
        connection = self._connection
        if self.is_in_process or (connection is not None and not connection.is_write_paused):
            await self._send(message)  # goes into the buffer of the connection
            return
        try:
            async with asyncio.timeout(seconds):
                await self._send(message)
        except TimeoutError:
            self.abort("slow-reader")
            raise ClientGoneError from None

    @property
    def _leaves_body_unread(self) -> bool:
        if self._is_read:
            return False
        announced = self._headers.length
        waits = bool(self.header(b"expect")) and announced > 0
        is_long = self._headers.is_chunked or announced > UNREAD_BODY
        return self._is_reading or waits or is_long


class ConnectionExchange(HttpExchange):
    """An exchange on a connection of this server, which has parsed the head."""

    is_in_process = False
    _whole = None

    def __init__(
        self,
        head: RequestHead,
        connection: Connection,
        certificate: PeerCertificate | None,
        transfer_limits: TransferLimits,
    ) -> None:
        self._head = head
        self._headers = head.headers
        self._connection = connection
        self.certificate = certificate
        self.method = head.method
        self.receive = connection.receive
        self._send = connection.send
        self._transfer_limits = transfer_limits

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self._head.scope(None if self._connection is None else self._connection.client)

    @property
    def path(self) -> str:
        return self._head.path

    @property
    def query(self) -> Mapping[str, str]:
        query = self._head.query
        return parse_query(query) if query else {}

    async def answer(self, response: Response) -> None:
        connection, body = self._connection, response.body
        if (
            connection is not None
            and response.more is None
            and 0 < len(body) < GZIP_FROM
            and self.method != "HEAD"
            and b"audit-id" not in self._headers.by_name
            and not self._leaves_body_unread
        ):
            lines = header_lines(response.content_type, response.cache_control, response.headers)
            if lines:
                audit_id = (self._audit_id or new_uid()).encode("ascii")
                lines = b"%baudit-id: %b\r\ncontent-length: %d\r\n" % (lines, audit_id, len(body))
                if connection.answer(response.code, lines, body):
                    return
        await super().answer(response)


class _Progress:
    """How far the sending of one answer is. Time that the server needs to make it is not the client's fault."""

    def __init__(
        self, within: Callable[[float, Message], Awaitable[None]], pace: TransferRate
    ) -> None:
        self._within = within
        self._pace = pace
        self._clock = asyncio.get_running_loop().time
        self._sent = 0
        self._waited = 0.0

    async def send(self, message: Message, size: int = 0) -> None:
        started = self._clock()
        await self._within(self._pace.deadline(-self._waited, self._sent), message)
        self._waited += self._clock() - started
        self._sent += size


def _check_size(size: int) -> None:
    if size > MAX_BODY:
        raise api_errors.body_too_large(MAX_BODY)


def _pieces(body: bytes) -> Iterator[Any]:
    """The body in order; views of it, not copies."""
    if len(body) <= PIECE:
        yield body
        return
    view = memoryview(body)
    for start in range(0, len(view), PIECE):
        yield view[start : start + PIECE]


async def _chained(first: bytes, more: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in more:
        yield piece


def _start(code: int, headers: Headers) -> Message:
    return {"type": "http.response.start", "status": code, "headers": headers}


def _body(piece: Any, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": piece, "more_body": more}


def _accepts_gzip(header: bytes) -> bool:
    for entry in header.split(b","):
        coding, _, quality = entry.partition(b";")
        if coding.strip().lower() == b"gzip":
            return quality.replace(b" ", b"").rstrip(b".0") not in (b"q=", b"q")
    return False


def _common_headers(content_type: str, audit_id: str, cache_control: bytes = NOT_CACHED) -> Headers:
    named = (b"audit-id", audit_id.encode("latin-1"))
    return [named, (b"cache-control", cache_control), type_header(content_type)]


@lru_cache(maxsize=256)
def header_lines(content_type: str, cache_control: bytes, more: tuple[Header, ...]) -> bytes:
    """The lines of headers that many answers have; none if one of them would not end where it should."""
    headers = (type_header(content_type), (b"cache-control", cache_control), *more)
    if any(_ends_line(text) for header in headers for text in header):
        return b""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


@lru_cache(maxsize=256)
def type_header(content_type: str) -> tuple[bytes, bytes]:
    return b"content-type", content_type.encode()
